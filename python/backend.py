# SPDX-License-Identifier: Apache-2.0
"""A build backend for `pip install ./python` (PEP 517, PEP 660). A wheel is a zip file of the modules, so the backend
needs no compiler, no setuptools and no network."""
import base64
import glob
import hashlib
import io
import os
import re
import tarfile
import zipfile

VERSION = re.search(r'__version__ = "(.*)"', open("gpuloom/__init__.py", encoding="utf-8").read()).group(1)
METADATA = """Metadata-Version: 2.1
Name: gpuloom
Version: %s
Summary: Results of gpuloom as data frames; runs, comparisons, plots; libgpuloom through ctypes
License: Apache-2.0
Requires-Python: >=3.9
Provides-Extra: plots
Requires-Dist: pandas; extra == "plots"
Requires-Dist: matplotlib; extra == "plots"
""" % VERSION


def _read(*patterns):
    return [(path, open(path, "rb").read()) for pattern in patterns for path in sorted(glob.glob(pattern))]


def _wheel(directory, files):
    name, info = "gpuloom-%s-py3-none-any.whl" % VERSION, "gpuloom-%s.dist-info/" % VERSION
    files = files + [(info + "METADATA", METADATA.encode()),
                     (info + "WHEEL", b"Wheel-Version: 1.0\nGenerator: gpuloom\nRoot-Is-Purelib: true\nTag: py3-none-any\n")]
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = "".join("%s,sha256=%s,%d\n" % (path, digest(data), len(data)) for path, data in files)
    with zipfile.ZipFile(os.path.join(directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files + [(info + "RECORD", (record + info + "RECORD,,\n").encode())]:
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100644 << 16  # without this line, only root could read the files
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory, _read("gpuloom/*.py", "gpuloom/py.typed"))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the wheel for `pip install -e`. It contains only the path of this folder."""
    return _wheel(wheel_directory, [("gpuloom.pth", (os.getcwd() + "\n").encode())])


def build_sdist(sdist_directory, config_settings=None):
    top = "gpuloom-%s" % VERSION
    with tarfile.open(os.path.join(sdist_directory, top + ".tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for path, data in [("PKG-INFO", METADATA.encode())] + _read("pyproject.toml", "backend.py", "gpuloom/*.py", "gpuloom/py.typed", "examples/*.ipynb"):
            entry = tarfile.TarInfo(top + "/" + path)
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))
    return top + ".tar.gz"
