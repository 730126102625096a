"""The recipe of petacqd for Spack. It builds the source tree that it lies in: docs/how-to/install.md says how to use it."""

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Petacqd(CMakePackage, CudaPackage):
    """Real-time acquisition daemon for PET scanners: coincidence list-mode from the UDP stream of detector boards, live."""

    license("Apache-2.0", checked_by="petacqd")

    # Its source is a checkout, which `spack develop` names.
    version("1.0.0")

    variant("systemd", default=False, description="Service notification, inherited sockets and the journal")
    variant("pictures", default=True, description="Reports and pictures of petlm, with cairo")
    variant("mpi", default=False, description="petlm-mpi, which finds the coincidences of several hosts")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("gzip", type="build")
    depends_on("boost@1.74:")
    depends_on("spdlog@1.10:+shared")
    depends_on("fmt@9.1:")
    depends_on("nlohmann-json@3.11:")
    depends_on("cli11@2.1:")
    depends_on("eigen@3.4:3")
    depends_on("openssl@3.0:")
    depends_on("isa-l@2.30:")
    depends_on("zstd@1.5.4:")
    depends_on("hwloc@2.9:")
    depends_on("ncurses")
    depends_on("zlib-api")
    depends_on("zlib@1.2.13:", when="^[virtuals=zlib-api] zlib")
    depends_on("libpng@1.6:")
    depends_on("hdf5@1.10.8:~mpi")
    depends_on("concurrentqueue")
    depends_on("systemd@252:", when="+systemd")
    depends_on("cairo@1.16:+svg", when="+pictures")
    depends_on("mpi", when="+mpi")

    conflicts("%gcc@:12.1", msg="g++ 12.2 or later is needed")
    conflicts("cuda_arch=none", when="+cuda", msg="name the architectures of the GPUs: cuda_arch=90")

    def cmake_args(self):
        arguments = [
            self.define("PETACQ_TESTS", False),
            self.define_from_variant("PETACQ_CUDA", "cuda"),
            self.define_from_variant("PETACQ_SYSTEMD", "systemd"),
            self.define_from_variant("PETACQ_CAIRO", "pictures"),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_MPI", not self.spec.satisfies("+mpi")),
            self.define("MOODYCAMEL_INCLUDE_DIR", self.spec["concurrentqueue"].package.folder()),
            self.define("CMAKE_INSTALL_SYSCONFDIR", "etc"),
        ]
        if self.spec.satisfies("+cuda"):
            arguments.append(self.define("CMAKE_CUDA_ARCHITECTURES", ";".join(self.spec.variants["cuda_arch"].value)))
        return arguments
