"""The house holds: layers, wheel, names, sizes."""
