"""tools/packaging/oci packs a root directory as an OCI image: oci_test.py ROOT"""

import gzip
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
CONFIG = {"architecture": "amd64", "config": {"Cmd": ["petacqd-demo"], "Env": ["A=b"], "User": "petacq"}}


class Image(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        with tarfile.open(self.folder / "root.tar", "w") as archive:
            entry = tarfile.TarInfo("usr/bin/petacqd-demo")
            entry.size, entry.mode, entry.mtime = 5, 0o755, 7
            archive.addfile(entry, io.BytesIO(b"hello"))

    def pack(self, output="image.tar", config=None, root="root.tar", epoch="1000000000", name="localhost/petacqd:1.2.3"):
        return subprocess.run([ROOT / "tools/packaging/oci", self.folder / root, name, self.folder / output],
                              input=json.dumps(CONFIG if config is None else config), capture_output=True, text=True, check=False,
                              env=os.environ | {"SOURCE_DATE_EPOCH": epoch})

    def read(self, output="image.tar"):
        with tarfile.open(self.folder / output) as archive:
            self.assertEqual({entry.mtime for entry in archive}, {1000000000})
            return {entry.name: archive.extractfile(entry).read() for entry in archive}

    def test_as_the_specification_says(self):
        self.assertEqual(self.pack().returncode, 0)
        files = self.read()
        self.assertEqual(json.loads(files["oci-layout"]), {"imageLayoutVersion": "1.0.0"})

        def follow(reference):
            content = files["blobs/" + reference["digest"].replace(":", "/")]
            self.assertEqual(("sha256:" + hashlib.sha256(content).hexdigest(), len(content)), (reference["digest"], reference["size"]))
            return content

        index = json.loads(files["index.json"])
        self.assertEqual(index["schemaVersion"], 2)
        (reference,) = index["manifests"]
        self.assertEqual(reference["mediaType"], "application/vnd.oci.image.manifest.v1+json")
        self.assertEqual(reference["annotations"], {"org.opencontainers.image.ref.name": "1.2.3", "io.containerd.image.name": "localhost/petacqd:1.2.3"})
        manifest = json.loads(follow(reference))
        config = json.loads(follow(manifest["config"]))
        self.assertEqual(manifest["config"]["mediaType"], "application/vnd.oci.image.config.v1+json")
        self.assertEqual((config["os"], config["architecture"], config["created"]), ("linux", "amd64", "2001-09-09T01:46:40Z"))
        self.assertEqual(config["config"], CONFIG["config"])
        (layer,) = manifest["layers"]
        self.assertEqual(layer["mediaType"], "application/vnd.oci.image.layer.v1.tar+gzip")
        plain = gzip.decompress(follow(layer))
        self.assertEqual(plain, (self.folder / "root.tar").read_bytes())
        self.assertEqual(config["rootfs"], {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]})
        # Nothing but that, and what older versions of docker read.
        self.assertEqual(len(files), 6)
        (old,) = json.loads(files["manifest.json"])
        self.assertEqual((files[old["Config"]], [files[name] for name in old["Layers"]], old["RepoTags"]),
                         (follow(manifest["config"]), [follow(layer)], ["localhost/petacqd:1.2.3"]))

    def test_the_same_input_gives_the_same_bytes(self):
        for output in ("one.tar", "two.tar"):
            self.assertEqual(self.pack(output).returncode, 0)
        self.assertEqual((self.folder / "one.tar").read_bytes(), (self.folder / "two.tar").read_bytes())

    def test_refused(self):
        (self.folder / "text").write_text("no tar file")
        for options, status, why in (({"root": "text"}, 1, "expected a tar file"), ({"config": {"config": {}}}, 1, "architecture"),
                                     ({"config": CONFIG | {"entrypoint": "x"}}, 1, "expected an object"), ({"name": "petacqd"}, 64, "usage:")):
            done = self.pack(**options)
            self.assertEqual(done.returncode, status, options)
            self.assertIn(why, done.stderr)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"root.tar", "text"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
