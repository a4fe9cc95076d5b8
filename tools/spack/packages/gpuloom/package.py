# SPDX-License-Identifier: Apache-2.0
# Builds the tree that contains this file: spack repo add tools/spack, then spack install gpuloom.
import os

from spack.package import *


class Gpuloom(MakefilePackage):
    """Builds and compares mechanisms of GPU scheduling, synchronisation and communication as plug-ins."""

    tree = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../../.."))
    git = "file://" + tree
    license("Apache-2.0")

    version("main", branch="main")

    variant("fabric", default=True, description="Network triggers, over libfabric")
    variant("pmix", default=True, description="Ranks that a PMIx launcher starts")
    variant("cuda", default=False, description="NVIDIA GPUs")
    variant("hip", default=False, description="AMD GPUs")

    depends_on("c", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("iniparser")
    depends_on("cjson")
    depends_on("numactl")
    depends_on("zlib-api")
    depends_on("libfabric", when="+fabric")
    depends_on("pmix", when="+pmix")
    depends_on("cuda", when="+cuda")
    depends_on("hip", when="+hip")

    def options(self):
        found = [n.upper() + ("=1" if "+" + n in self.spec else "=0") for n in ("fabric", "pmix", "cuda", "hip")]
        places = [("+cuda", "CUDA_HOME", "cuda"), ("+hip", "ROCM_PATH", "hip")]
        found += [variable + "=" + self.spec[name].prefix for on, variable, name in places if on in self.spec]
        return found + ["PREFIX=" + self.prefix, "LIBDIR=" + self.prefix.lib]

    def build(self, spec, prefix):
        make("all", *self.options())

    def install(self, spec, prefix):
        make("install", *self.options())
