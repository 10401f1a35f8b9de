#!/bin/sh
# One scan for a scheduler, from the folder with tfguard.yaml: keeps the findings, tells what is new, writes the metrics.
# Ends with the scan's own exit code: 0 nothing, 2 something that no state knows, 3 nothing but incomplete, 1 an error.
set -u
findings=${TFGUARD_FINDINGS:-findings.json}
metrics=${TFGUARD_METRICS:-}

tfguard scan --state-file "$findings" --since last
code=$?

# After an error the numbers stay as they were: watch tfguard_scan_end_timestamp_seconds for scans that stopped coming.
case $code in
  0 | 2 | 3)
    if [ -n "$metrics" ]; then
      # Written beside and renamed, so that nobody reads half of it.
      tfguard metrics --state-file "$findings" >"$metrics.new" && mv "$metrics.new" "$metrics"
    fi
    ;;
esac
exit "$code"
