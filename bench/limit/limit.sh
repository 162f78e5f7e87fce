#!/usr/bin/env bash
# What the server can do when the client costs nothing: hand-written SQL, run by pgbench. Prints tab-separated lines.
#   DSN="host=... dbname=scratch" [PGBIN=directory] [CLIENTS="1 2 8"] [SECONDS_EACH=3] [ROUNDS=3] [HOLD=1] [ONLY=pattern] bench/limit/limit.sh
# Its tables jobs and job_runs are dropped and made in DSN: give it a scratch database. HOLD=1: another session holds a
# snapshot meanwhile, so that vacuum can remove nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
: "${DSN:?DSN names a scratch database}"
pgbin=${PGBIN:+$PGBIN/}
psql=(psql -X -q -A -t -v ON_ERROR_STOP=1 -d "$DSN")
seconds=${SECONDS_EACH:-3}
jobs=${JOBS:-1000000}

# measure NAME SCRIPT BATCH: jobs a second with each number of clients.
measure() {
  [[ $1 == *${ONLY:-}* ]] || return 0
  local clients before after rows wal holder=
  for clients in ${CLIENTS:-1 2 8}; do
    "${psql[@]}" -f schema.sql
    [[ $2 == insert* ]] || "${psql[@]}" -v jobs="$jobs" -f fill.sql
    "${psql[@]}" -c 'VACUUM (ANALYZE) jobs' -c CHECKPOINT
    if [ -n "${HOLD:-}" ]; then
      "${psql[@]}" -c 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1' -c "SELECT pg_sleep($seconds + 5)" >/dev/null & holder=$!
      sleep 0.5
    fi
    before=$("${psql[@]}" -c "SELECT pg_current_wal_insert_lsn()")
    "${pgbin}pgbench" -n -M prepared -c "$clients" -j "$clients" -T "$seconds" -f "$2.sql" \
      -D batch="$3" -D priority=-32768 -D run_at=-infinity -D id=0 "$DSN" >/dev/null 2>&1
    wal=$("${psql[@]}" -c "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$before')")
    if [[ $2 == insert* ]]; then
      rows=$("${psql[@]}" -c 'SELECT count(*) FROM jobs')
    else
      rows=$("${psql[@]}" -c "SELECT $jobs - count(*) FROM jobs")
    fi
    [ -z "$holder" ] || { kill "$holder" 2>/dev/null || true; wait "$holder" 2>/dev/null || true; }
    printf '%s\t%s clients\t%s jobs/s\t%s B of WAL a job\n' "$1" "$clients" "$((rows / seconds))" "$((${wal%.*} / (rows > 0 ? rows : 1)))"
  done
}

for _ in $(seq "${ROUNDS:-3}"); do
  measure "claim 1, delete 1" claim_complete 1
  measure "claim 100, delete 100" claim_complete 100
  measure "claim 100, delete 100, audit" claim_complete_audit 100
  measure "claim 1000, delete 1000, audit" claim_complete_audit 1000
  measure "claim 100 from a bound, delete 100, audit" claim_bounded_audit 100
  measure "insert 1" insert_one 1
  measure "insert 1, notify" insert_one_notify 1
  measure "insert 1000 made by the server" insert_many 1000
done
