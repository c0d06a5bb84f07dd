-- The audit log and events get a part for each month, by their ids, which begin with the time. What was there before is a
-- part of its own until the end of this month.
DO $$
DECLARE
    kept TEXT;
    definitions TEXT[];
    definition TEXT;
    index_name TEXT;
    next_month UUID;
    has_rows BOOLEAN;
BEGIN
    next_month := (lpad(to_hex((extract(epoch FROM date_trunc('month', now() AT TIME ZONE 'UTC') + INTERVAL '1 month')
        * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
    FOREACH kept IN ARRAY ARRAY['audit_log', 'event'] LOOP
        definitions := ARRAY(SELECT pg_get_indexdef(indexrelid) FROM pg_index
            WHERE indrelid = to_regclass(kept) AND NOT indisprimary);
        FOR index_name IN SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
            WHERE indrelid = to_regclass(kept) LOOP
            EXECUTE format('ALTER INDEX %I RENAME TO %I', index_name, index_name || '_before');
        END LOOP;
        EXECUTE format('ALTER TABLE %I RENAME TO %I', kept, kept || '_before');
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS) PARTITION BY RANGE (id)', kept, kept || '_before');
        EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (id), '
            'ADD FOREIGN KEY (tenant_id) REFERENCES tenant (id) ON DELETE CASCADE', kept);
        FOREACH definition IN ARRAY definitions LOOP
            EXECUTE definition;
        END LOOP;
        EXECUTE format('CREATE TABLE %I PARTITION OF %I DEFAULT', kept || '_rest', kept);
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', kept || '_before') INTO has_rows;
        IF has_rows THEN
            -- Few ids, if any, are of a time to come.
            EXECUTE format('WITH later AS (DELETE FROM %1$I WHERE id >= %2$L RETURNING *) INSERT INTO %3$I SELECT * FROM later',
                kept || '_before', next_month, kept);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%L)',
                kept, kept || '_before', next_month);
        ELSE
            EXECUTE format('DROP TABLE %I', kept || '_before');
        END IF;
    END LOOP;
END $$;
