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

# install_test_servers: the servers that records are tested on and that no Python package carries. Does nothing when they
# are there. What cannot be had is told in one line; the tests on it are then skipped.
install_test_servers() {
  install_azurite || echo "no Azurite (Azure Blob), so its tests are skipped: npm with Node.js is needed, and the npm registry" >&2
  install_postgresql || echo "no PostgreSQL server, so its tests are skipped: install Debian's postgresql, or put initdb on the PATH" >&2
}

# The last Azurite that runs on Node.js 20 and older.
install_azurite() {
  local folder=$root/.test-servers
  if [ -x "$folder/node_modules/.bin/azurite-blob" ]; then
    return
  fi
  command -v npm >/dev/null || return 1
  echo "installing Azurite in $folder (about a minute, once)" >&2
  npm install --prefix "$folder" --silent --no-audit --no-fund --no-progress azurite@3.35.0 >/dev/null
}

install_postgresql() {
  if command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    return
  fi
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    return 1
  fi
  echo "installing PostgreSQL with apt-get (about a minute, once)" >&2
  local -x DEBIAN_FRONTEND=noninteractive
  {
    apt-get update -qq
    # Debian starts a server with the package; the tests start their own.
    apt-get install -qq -y --no-install-recommends postgresql-common
    sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
    apt-get install -qq -y --no-install-recommends postgresql
  } >/dev/null 2>&1
}

# can_hold_tests FOLDER: whether the tests can have their files there: enough room (4 GB), and programs may be run from it.
can_hold_tests() {
  local folder=$1 room probe answer=1
  room=$(df -Pk "$folder" 2>/dev/null | awk 'NR == 2 { print $4 }') || return 1
  [ "${room:-0}" -gt 4000000 ] || return 1
  probe=$(mktemp "$folder/tfguard.XXXXXX" 2>/dev/null) || return 1
  printf '#!/bin/sh\n' >"$probe"
  chmod +x "$probe"
  if "$probe" 2>/dev/null; then answer=0; fi
  rm -f "$probe"
  return $answer
}
