"""Tiling and video files, read back with an independent decoder."""

from __future__ import annotations

import imageio.v3 as iio
import numpy as np
import pytest

from rsim_jax.render import VideoWriter, tile, write_video


def flat(value: int, height: int = 4, width: int = 6) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


def test_tile_puts_worlds_row_by_row():
    sheet = tile([flat(50), flat(100), flat(150), flat(200), flat(250)], border=1)
    assert sheet.shape == (2 * 4 + 1, 3 * 6 + 2, 3)
    assert [sheet[1, x, 0] for x in (2, 9, 16)] == [50, 100, 150]
    assert [sheet[6, x, 0] for x in (2, 9, 16)] == [200, 250, 0]
    assert (sheet[4] == 0).all() and (sheet[:, 6] == 0).all()
    assert np.array_equal(tile([flat(7)]), flat(7))
    assert tile([flat(1)] * 3, columns=8).shape == (4, 22, 3)


def test_tile_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="at least one"):
        tile([])
    with pytest.raises(ValueError, match="one size"):
        tile([flat(1), flat(1, 5)])
    with pytest.raises(ValueError, match="columns >= 1"):
        tile([flat(1)], columns=0)


@pytest.mark.parametrize("size", [(48, 64), (31, 45)])
def test_video_has_every_frame_at_its_rate(tmp_path, size):
    levels = [0, 60, 120, 180, 240]
    path = write_video(tmp_path / "out.mp4", (flat(v, *size) for v in levels), fps=12.5)
    frames = iio.imread(path, plugin="FFMPEG")
    assert frames.shape == (5, size[0] + size[0] % 2, size[1] + size[1] % 2, 3)
    np.testing.assert_allclose(frames.mean(axis=(1, 2, 3)), levels, atol=4)
    assert iio.immeta(path, plugin="FFMPEG")["fps"] == pytest.approx(12.5)
    assert [p.name for p in tmp_path.iterdir()] == ["out.mp4"]


def test_an_error_on_the_way_leaves_nothing_and_keeps_the_old_file(tmp_path):
    path = tmp_path / "out.mp4"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="first was"), VideoWriter(path, 10) as video:
        video.add(flat(1, 32, 32))
        video.add(flat(1, 32, 34))
    assert path.read_bytes() == b"old"
    with pytest.raises(ValueError, match="no frame"):
        write_video(path, [], 10)
    assert [p.name for p in tmp_path.iterdir()] == ["out.mp4"]


def test_bad_paths_and_rates_are_refused_before_any_work(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.mp4"):
        VideoWriter(tmp_path / "out.avi", 10)
    with pytest.raises(FileNotFoundError, match="no folder"):
        VideoWriter(tmp_path / "missing" / "out.mp4", 10)
    with pytest.raises(ValueError, match="must be positive"):
        VideoWriter(tmp_path / "out.mp4", 0)
