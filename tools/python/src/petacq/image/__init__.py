"""Images of ``petlm``: their voxels, and a look at them in a notebook."""

from petacq.image.image import Image, open_image

__all__ = ["Image", "open_image"]
