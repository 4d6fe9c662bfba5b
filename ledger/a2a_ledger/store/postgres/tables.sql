-- The tables and functions of one ledger, all in one schema.
-- Run once, by `a2a-ledger db migrate` or by hand, as the role that is to own them, with search_path set to the
-- schema and then pg_temp, in one transaction. The functions keep that search_path for ever.

CREATE TABLE ledger_log (
    one boolean PRIMARY KEY DEFAULT true CHECK (one), -- there is one row
    format integer NOT NULL,
    origin text COLLATE "C" -- name of the log, given by its first append
);
INSERT INTO ledger_log (format) VALUES (1);

CREATE TABLE ledger_events (
    rowid bigint PRIMARY KEY, -- log index + 1, dense
    originator_id text COLLATE "C" NOT NULL,
    originator_version bigint NOT NULL,
    topic text COLLATE "C" NOT NULL,
    c bytea NOT NULL,
    t bytea NOT NULL,
    state bytea NOT NULL,
    UNIQUE (originator_id, originator_version)
);
ALTER TABLE ledger_events ALTER state SET STORAGE EXTERNAL; -- sealed octets do not compress

CREATE TABLE ledger_tracking (
    application_name text COLLATE "C" PRIMARY KEY,
    notification_id bigint NOT NULL,
    digest bytea NOT NULL
);

CREATE TABLE ledger_tiles (
    level integer NOT NULL,
    idx bigint NOT NULL,
    hashes bytea NOT NULL,
    PRIMARY KEY (level, idx)
);
ALTER TABLE ledger_tiles ALTER hashes SET STORAGE EXTERNAL;

CREATE TABLE ledger_blobs (
    id bytea PRIMARY KEY,
    parts bytea NOT NULL
);
ALTER TABLE ledger_blobs ALTER parts SET STORAGE EXTERNAL;

CREATE TABLE ledger_tags (
    tag text COLLATE "C" NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (tag, n)
);

CREATE TABLE ledger_checkpoints (
    size bigint PRIMARY KEY,
    note text NOT NULL
);

-- What was recorded stays, whoever asks. This stops accidents; what an owner changes on purpose, an audit finds.
CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed or removed', TG_TABLE_NAME USING ERRCODE = '42501';
END
$$;
CREATE TRIGGER ledger_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_events EXECUTE FUNCTION ledger_refuse();
CREATE TRIGGER ledger_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_blobs EXECUTE FUNCTION ledger_refuse();
CREATE TRIGGER ledger_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_tags EXECUTE FUNCTION ledger_refuse();

-- The root over hashes that stand one behind the other; their number is a power of two (RFC 6962 section 2.1).
CREATE FUNCTION ledger_root(hashes bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    level bytea := hashes;
BEGIN
    WHILE octet_length(level) > 32 LOOP
        SELECT string_agg(sha256('\x01'::bytea || substring(level FROM pair * 64 + 1 FOR 64)), ''::bytea ORDER BY pair)
        INTO level FROM generate_series(0, octet_length(level) / 64 - 1) AS pair;
    END LOOP;
    RETURN level;
END
$$;

-- Writes the tile of 256 leaves that has just become full, and grows the levels above it (docs/format.md section 5).
CREATE FUNCTION ledger_fill_tile(log text, place bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    tile bytea;
    height integer := 0;
    at bigint := place;
BEGIN
    SELECT string_agg(sha256('\x00'::bytea || convert_to(
            '{"c":"' || encode(e.c, 'hex') || '","log":"' || log || '","n":' || (e.rowid - 1)
            || ',"t":"' || encode(e.t, 'hex') || '","v":1}', 'UTF8')), ''::bytea ORDER BY e.rowid)
        INTO tile FROM ledger_events e WHERE e.rowid > place * 256 AND e.rowid <= place * 256 + 256;
    INSERT INTO ledger_tiles VALUES (0, place, tile);
    LOOP
        IF octet_length(tile) <> 8192 THEN
            RAISE EXCEPTION 'tile % at level % is not full: it is damaged', at, height USING ERRCODE = 'A2L03';
        END IF;
        height := height + 1;
        INSERT INTO ledger_tiles AS t VALUES (height, at / 256, ledger_root(tile))
            ON CONFLICT (level, idx) DO UPDATE SET hashes = t.hashes || excluded.hashes RETURNING t.hashes INTO tile;
        EXIT WHEN at % 256 <> 255;
        at := at / 256;
    END LOOP;
END
$$;

-- Appends the events of a group of calls in one round trip, all of them or none.
--
-- The lock is held until the transaction has ended, and row ids are given under it: whoever reads on by row id never
-- passes an event that comes into sight later. Each statement in here sees what was committed before it, so after the
-- lock was taken that is everything (volatile, READ COMMITTED).
--
-- `tip_*` say on which newest event of its stream each part of the group was placed. Where another writer was faster,
-- nothing is written and -1 is returned. A group without events writes a message to the write-ahead log instead, so
-- that "it is there already" too waits for the synchronous standby. Returns the log index of the first event.
CREATE FUNCTION ledger_append(
    log text, known bigint,
    tip_streams text[], tip_versions bigint[], tip_cs bytea[],
    streams text[], versions bigint[], topics text[], cs bytea[], ts bytea[], states bytea[],
    tags text[], tag_places bigint[],
    blob_ids bytea[], blob_parts bytea[],
    followers text[], positions bigint[], digests bytea[]
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    size bigint;
    written bigint := cardinality(streams);
    name text;
BEGIN
    PERFORM pg_advisory_xact_lock(1093815367, 'ledger_events'::regclass::oid::integer);
    SELECT coalesce(max(e.rowid), 0) INTO size FROM ledger_events e;
    IF size < known THEN
        RAISE EXCEPTION '%', size USING ERRCODE = 'A2L02';
    END IF;
    SELECT l.origin INTO name FROM ledger_log l;
    IF name IS DISTINCT FROM log THEN
        IF name IS NOT NULL THEN
            RAISE EXCEPTION '%', name USING ERRCODE = 'A2L04';
        END IF;
        UPDATE ledger_log SET origin = log;
    END IF;
    PERFORM 1 FROM unnest(tip_streams, tip_versions, tip_cs) AS tip (stream, ver, c)
        LEFT JOIN LATERAL (
            SELECT e.originator_version AS ver, e.c FROM ledger_events e WHERE e.originator_id = tip.stream
            ORDER BY e.originator_version DESC LIMIT 1
        ) newest ON true
        WHERE coalesce(newest.ver, -1) <> tip.ver OR coalesce(newest.c, '') <> tip.c;
    IF FOUND THEN
        RETURN -1;
    END IF;
    FOR i IN 1 .. cardinality(followers) LOOP
        INSERT INTO ledger_tracking AS t VALUES (followers[i], positions[i], digests[i])
            ON CONFLICT (application_name) DO UPDATE
            SET notification_id = excluded.notification_id, digest = excluded.digest
            WHERE t.notification_id < excluded.notification_id;
        IF NOT FOUND THEN
            RAISE EXCEPTION '%', followers[i] USING ERRCODE = 'A2L01';
        END IF;
    END LOOP;
    IF written = 0 THEN
        PERFORM pg_logical_emit_message(true, 'a2a-ledger', '');
        RETURN size;
    END IF;
    INSERT INTO ledger_events
        SELECT size + new.place, new.stream, new.ver, new.topic, new.c, new.t, new.state
        FROM unnest(streams, versions, topics, cs, ts, states)
            WITH ORDINALITY AS new (stream, ver, topic, c, t, state, place);
    IF cardinality(tags) > 0 THEN
        INSERT INTO ledger_tags SELECT new.tag, size + new.place FROM unnest(tags, tag_places) AS new (tag, place);
    END IF;
    IF cardinality(blob_ids) > 0 THEN
        INSERT INTO ledger_blobs SELECT * FROM unnest(blob_ids, blob_parts);
    END IF;
    FOR place IN size / 256 .. (size + written) / 256 - 1 LOOP
        PERFORM ledger_fill_tile(log, place);
    END LOOP;
    PERFORM pg_notify('a2a_ledger', current_schema() || ':' || size + written);
    RETURN size;
END
$$;

-- Nobody calls these by default; docs/postgresql.md says what a writer and a reader are granted.
REVOKE ALL ON FUNCTION ledger_append, ledger_fill_tile, ledger_root, ledger_refuse FROM PUBLIC;
