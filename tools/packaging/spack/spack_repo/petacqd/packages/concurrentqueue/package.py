"""The headers of moodycamel::ConcurrentQueue, as the system has them: Spack has no package of them."""

import os

from spack_repo.builtin.build_systems.bundle import BundlePackage

from spack.package import *


class Concurrentqueue(BundlePackage):
    """Lock-free queue, headers only; an external package: libconcurrentqueue-dev of Debian and Ubuntu, or any folder with them."""

    version("1.0.3")

    def folder(self):
        """Where blockingconcurrentqueue.h is below the prefix. Later releases have it in moodycamel/."""
        for below in ("include/concurrentqueue", "include/concurrentqueue/moodycamel", "include", "."):
            folder = os.path.join(self.prefix, below)
            if os.path.exists(os.path.join(folder, "blockingconcurrentqueue.h")):
                return folder
        raise InstallError(
            f"{self.prefix} has no blockingconcurrentqueue.h; expected an external package whose prefix has: "
            "spack external find does not know it, packages.yaml names it (docs/how-to/install.md)")
