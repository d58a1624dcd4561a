"""Writing frames to an mp4 file, whole or not at all."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Generator, Iterable
from pathlib import Path
from types import TracebackType

import numpy as np


class VideoWriter:
    """Encodes frames as they come: `with VideoWriter("out.mp4", fps=50) as video: video.add(frame)`.

    The file appears under its name only when all frames are in; an error on the way leaves nothing behind.

    Args:
        path: the file to write, ending in .mp4; its folder must exist.
        fps: frames per second of the video, > 0.

    Raises:
        ValueError: for another ending or a frame rate that is not positive.
        OSError: when the folder is missing or the encoder fails.
    """

    def __init__(self, path: str | Path, fps: float) -> None:
        self._path = Path(path)
        if self._path.suffix.lower() != ".mp4":
            raise ValueError(f"video file {self._path} must end in .mp4")
        if not fps > 0:
            raise ValueError(f"frames per second must be positive, got {fps}")
        if not self._path.parent.is_dir():
            raise FileNotFoundError(f"no folder {self._path.parent} to write {self._path.name} to")
        self._fps = fps
        self._partial = self._path.with_name(f".{self._path.stem}.partial.mp4")
        self._encoder: Generator[None, bytes, None] | None = None
        self._shape: tuple[int, ...] = ()

    def add(self, frame: np.ndarray) -> None:
        """Appends a picture (H, W, 3), uint8; all must have the size of the first."""
        data = np.ascontiguousarray(_even(frame), np.uint8).tobytes()
        if self._encoder is None:
            self._shape = np.shape(frame)
            self._start(data)
        elif np.shape(frame) != self._shape:
            raise ValueError(f"frame is {np.shape(frame)}, but the video's first was {self._shape}")
        else:
            self._encoder.send(data)

    def _start(self, first: bytes) -> None:
        import imageio_ffmpeg  # bundles its own ffmpeg; only needed once a video is written

        height, width = self._shape[:2]
        size = (width + width % 2, height + height % 2)
        self._encoder = imageio_ffmpeg.write_frames(
            str(self._partial), size, fps=self._fps, quality=7, macro_block_size=2, ffmpeg_log_level="error"
        )
        with warnings.catch_warnings():  # Python warns of forks beside JAX's threads; the child only starts ffmpeg
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
            self._encoder.send(None)
            self._encoder.send(first)

    def __enter__(self) -> VideoWriter:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if self._encoder is not None:
                self._encoder.close()
            if kind is None:
                if self._encoder is None:
                    raise ValueError(f"no frame was given for {self._path}")
                self._partial.replace(self._path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                self._partial.unlink()


def write_video(path: str | Path, frames: Iterable[np.ndarray], fps: float) -> Path:
    """Writes frames (H, W, 3), uint8, as an mp4 file and returns its path; see `VideoWriter` for what it raises."""
    with VideoWriter(path, fps) as video:
        for frame in frames:
            video.add(frame)
    return Path(path)


def _even(frame: np.ndarray) -> np.ndarray:
    """Repeats the last row or column where needed: the codec stores colour at half resolution."""
    return np.pad(frame, ((0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0)), mode="edge")
