"""The first job of README.md, typed as it stands there, by a person whose home is empty."""

import os
import re
import subprocess

from conftest import APPS, ROOT


def test_the_first_job_of_the_readme_works_as_written(tmp_path):
    section = (ROOT / "README.md").read_text().split("## A first job")[1].split("\n## ")[0]
    blocks = re.findall(r"^```\n(.*?)^```", section, re.M | re.S)
    script = "\n".join(blocks).replace("./dev build\n", "").replace("$PWD/build/release/apps", str(APPS))
    assert "create-training-job" in script and str(APPS) in script
    env = {"HOME": str(tmp_path), "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}", "AWS_PAGER": "",
           "AWS_EC2_METADATA_DISABLED": "true", "LANG": "C.UTF-8"}
    try:
        done = subprocess.run(["bash", "-euc", script], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    finally:
        subprocess.run([APPS / "gruca", "service", "stop", "--stop-jobs"], env=env, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "training on algo-1" in done.stdout and "training on algo-2" in done.stdout
    assert '"TrainingJobStatus": "Completed"' in done.stdout
    assert (tmp_path / "model.tar.gz").stat().st_size > 0
    assert "the service has ended" in done.stdout
