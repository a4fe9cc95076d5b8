# SPDX-License-Identifier: Apache-2.0
"""What `pip install ./python` calls (PEP 517): a wheel is a zip file of the modules. So neither a compiler nor setuptools
nor a network is needed."""
import base64
import glob
import hashlib
import re
import zipfile

VERSION = re.search(r'__version__ = "(.*)"', open("gpuloom/__init__.py").read()).group(1)
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


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name, info = "gpuloom-%s-py3-none-any.whl" % VERSION, "gpuloom-%s.dist-info/" % VERSION
    files = [(path, open(path, "rb").read()) for path in sorted(glob.glob("gpuloom/*.py"))]
    files += [(info + "METADATA", METADATA.encode()),
              (info + "WHEEL", b"Wheel-Version: 1.0\nGenerator: gpuloom\nRoot-Is-Purelib: true\nTag: py3-none-any\n")]
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = "".join("%s,sha256=%s,%d\n" % (path, digest(data), len(data)) for path, data in files)
    with zipfile.ZipFile(wheel_directory + "/" + name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files + [(info + "RECORD", (record + info + "RECORD,,\n").encode())]:
            wheel.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)
    return name
