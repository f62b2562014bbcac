# Dumps the database, in which both services have their schemas, as of one moment, and restores the dump into another database,
# which `emend doctor` then looks at. BACKUP_URL and RESTORE_URL name the two; the second one is emptied of what Emend had there.
set -eu
umask 077
used="SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name IN ('emend feedback-svc', 'emend learning-svc')"
if [ "$(psql --no-psqlrc --tuples-only --no-align --dbname="$RESTORE_URL" --command="$used")" != 0 ]; then
  echo "the services use the database of RESTORE_URL, which would be emptied: nothing is done" >&2
  exit 1
fi
name="$(date -u +%Y-%m-%dT%H-%M-%SZ).dump"
rm -f "$BACKUPS"/*.partial
pg_dump --format=custom --schema='emend_*' --file="$BACKUPS/$name.partial" "$BACKUP_URL"
psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --dbname="$RESTORE_URL" \
  --command='SET client_min_messages = warning; DROP SCHEMA IF EXISTS emend_feedback, emend_learning CASCADE'
pg_restore --no-owner --no-privileges --exit-on-error --dbname="$RESTORE_URL" "$BACKUPS/$name.partial"
mv "$BACKUPS/$name.partial" "$BACKUPS/$name"
ls -1 "$BACKUPS" | grep 'Z\.dump$' | sort -r | tail -n "+$((KEEP + 1))" | while read -r old; do rm "$BACKUPS/$old"; done
