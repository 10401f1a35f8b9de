# Sourced by the scripts beside it: a virtual environment with tfguard in it.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The first Python on the PATH that is new enough.
find_python() {
  local candidate
  for candidate in python3 python3.13 python3.12 python3.11 python; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "Python 3.11 or newer is needed and was not found" >&2
  return 1
}

# make_venv FOLDER EXTRA: tfguard with this extra in FOLDER; does nothing when it is there and pyproject.toml is the same.
make_venv() {
  local folder=$1 extra=$2 python stamp
  stamp="$extra $(cksum <"$root/pyproject.toml")"
  if [ -x "$folder/bin/python" ] && [ "$(cat "$folder/.tfguard-stamp" 2>/dev/null)" = "$stamp" ]; then
    return
  fi
  python=$(find_python)
  echo "setting up Python packages in $folder (about a minute, once)" >&2
  "$python" -m venv --clear "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$root[$extra]" \
    2> >(grep -v '^WARNING: Location' >&2)
  echo "$stamp" >"$folder/.tfguard-stamp"
}

need_engine() {
  if ! command -v terraform >/dev/null && ! command -v tofu >/dev/null; then
    echo "terraform (1.5 or newer) or tofu (1.6 or newer) is needed on the PATH" >&2
    return 1
  fi
}
