"""Records of other software, made ready for ``petlm import``, the one program that writes list-mode of them."""
