"""Contact rows: geometry to constraint rows, the projected Gauss-Seidel solver, the exact single row, reports."""
