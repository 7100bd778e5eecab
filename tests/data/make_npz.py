#!/usr/bin/env python3
"""Archives of arrays as NumPy writes them, for io_spec.lua: stored.npz and deflated.npz beside this script. Needs NumPy; zip's
dates are left out, so that the files are the same each time."""
import io
import os
import zipfile

import numpy as np

arrays = {
    "a": np.arange(12, dtype="<f4").reshape(3, 4) / 4,
    "fortran": np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3) - 2),
    "dt": np.array(0.004),
    "z": np.array([1 + 2j, -3j]),
    "ramp": np.arange(40000, dtype="<i4").reshape(200, 200),
}
here = os.path.dirname(os.path.abspath(__file__))
for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
    with zipfile.ZipFile(os.path.join(here, name + ".npz"), "w") as f:
        for key, a in arrays.items():
            if name == "stored" and key == "ramp":
                continue
            b = io.BytesIO()
            np.save(b, a)
            f.writestr(zipfile.ZipInfo(key + ".npy"), b.getvalue(), compress_type=method, compresslevel=9)
        f.writestr("readme.txt", "no array")
