#!/usr/bin/env bash
# Check a small evidence bundle of a2a-ledger with common tools: unzip, sha256sum, openssl (3 or later), jq, od.
#
#   verify.sh BUNDLE.zip LOG-VKEY [TIME-ROOT.pem]
#
# LOG-VKEY is the log's key as its owner gave it to you: <name>+<8 hex digits>+<base64>. TIME-ROOT.pem is the root
# certificate of a timestamp authority, as you got it from that authority: with it the bundle's time tokens are checked.
# Exit 0: everything below holds. 1: something does not. 2: the command cannot be used, or a tool is missing. 3: not
# proven: a time token by your root; a log whose keys changed, and a bundle in packs (of a long task, a context, a
# peer), are for `a2a_verify.py`.
#
# What it checks (docs/format.md 12): manifests and the exporter's two signatures (I), the signature of the checkpoint by
# the key that you gave (L), the inclusion proof of every leaf (P), the commitment of every record (part of C1), and by
# `openssl ts -verify` time tokens (part of T: not whether an older head that one is over leads on to the checkpoint).
# What it does not: blobs, streams and their ends (C2), holes (X), findings and replay (R), witnesses, earlier heads, the
# strict reading of zip and JSON, keys of small order. `a2a_verify.py` beside it and `a2a-ledger verify` do.
# It takes about a second for ten events. Nothing from the bundle is run, and all of it is unpacked into a new folder.
set -euo pipefail
export LC_ALL=C

usage() { echo "verify.sh: $1" >&2; exit 2; }
bad() { echo "INVALID: $1"; exit 1; }
undecided() { echo "NOT PROVEN: $1"; exit 3; }

[ $# -eq 2 ] || [ $# -eq 3 ] || usage "expected BUNDLE.zip LOG-VKEY [TIME-ROOT.pem]"
for tool in unzip sha256sum openssl jq od base64; do
    command -v "$tool" >/dev/null || usage "$tool is missing"
done
bundle=$1 log_vkey=$2 time_root=${3:-}
[ -r "$bundle" ] || usage "$bundle cannot be read"
[ -z "$time_root" ] || time_root=$(realpath -e -- "$time_root" 2>/dev/null) || usage "$3 cannot be read"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

hex() { od -An -v -tx1 | tr -d ' \n'; }                                         # octets -> hex
octets() { printf '%b' "$(printf '%s' "$1" | sed 's/../\\x&/g')"; }             # hex -> octets
hash() { sha256sum | cut -c 1-64; }
unbase() { printf '%s' "$1" | base64 -d 2>/dev/null; }

pem_of() { # pem_of VKEY FILE: write the Ed25519 public key of a vkey, whose key id has to fit
    local name=${1%%+*} rest=${1#*+} id blob
    id=${rest%%+*} blob=$(unbase "${rest#*+}" | hex)
    [ "${#blob}" -eq 66 ] && [ "${blob:0:2}" = 01 ] || return 1
    [ "$({ printf '%s\n' "$name"; octets "$blob"; } | hash | cut -c 1-8)" = "$id" ] || return 1
    {
        echo '-----BEGIN PUBLIC KEY-----'
        octets "302a300506032b6570032100${blob:2}" | base64 -w 0
        printf '\n-----END PUBLIC KEY-----\n'
    } >"$2"
}

signed() { # signed PEM SIGNATURE-FILE MESSAGE-FILE
    openssl pkeyutl -verify -pubin -inkey "$1" -rawin -in "$3" -sigfile "$2" >/dev/null 2>&1
}

pem_of "$log_vkey" "$place/log.pem" || usage "that is no Ed25519 vkey: <name>+<8 hex digits>+<base64>"
origin=${log_vkey%%+*}

# 1 The zip: only plain names, each once, and not too much. unzip may read a hostile zip otherwise than others do.
names=$(unzip -Z1 "$bundle" 2>/dev/null) || bad "no zip"
if printf '%s\n' "$names" | grep -qvE '^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$'; then bad "a name in the zip is not plain"; fi
[ -z "$(printf '%s\n' "$names" | tr 'A-Z' 'a-z' | sort | uniq -d)" ] || bad "a name is twice in the zip"
[ "$(printf '%s\n' "$names" | wc -l)" -le 2000 ] || usage "more than 2000 files: use a2a_verify.py"
size=$(unzip -Zt "$bundle" 2>/dev/null | sed -n 's/.*files\{0,1\}, \([0-9]*\) bytes uncompressed.*/\1/p')
[ "${size:-999999999}" -le 67108864 ] || usage "more than 64 MiB: use a2a_verify.py"
unzip -qq "$bundle" -d "$place/bag" >/dev/null 2>&1 || bad "the zip cannot be unpacked"
cd "$place/bag"
log=data/log
[ ! -d data/packs ] || undecided "the files of this bundle lie in packs: use a2a_verify.py"

# 2 The manifests, both ways (I).
for file in bagit.txt manifest-sha256.txt tagmanifest-sha256.txt data/claims.json $log/checkpoint $log/events.jsonl $log/index.tsv; do
    [ -f "$file" ] || bad "$file is missing"
done
sha256sum --check --strict --quiet tagmanifest-sha256.txt >/dev/null 2>&1 || bad "a tag file is not what tagmanifest-sha256.txt says"
sha256sum --check --strict --quiet manifest-sha256.txt >/dev/null 2>&1 || bad "a file is not what manifest-sha256.txt says"
listed() { sed 's/^[0-9a-f]\{64\}  //' "$1" | sort; }
[ "$(listed manifest-sha256.txt)" = "$(find data -type f | sort)" ] || bad "manifest-sha256.txt does not list what is there"
tags=$(find . -maxdepth 1 -type f ! -name 'tagmanifest-sha256.txt*' | sed 's,^\./,,' | sort)
[ "$(listed tagmanifest-sha256.txt)" = "$tags" ] || bad "tagmanifest-sha256.txt does not list what is there"

# 7 The checkpoint, by the key that you gave (L). The text that is signed ends before the empty line.
note=$log/checkpoint
sed '/^$/,$d' $note >"$place/text"
{ read -r found && read -r size && read -r root; } <"$place/text" || bad "the checkpoint is none"
[ "$found" = "$origin" ] || bad "the checkpoint is of log $found, your key of $origin"
[[ $size =~ ^[1-9][0-9]{0,17}$ ]] || bad "the checkpoint states no size"
root=$(unbase "$root" | hex)
[ "${#root}" -eq 64 ] || bad "the checkpoint states no root"
id=${log_vkey#*+} id=${id%%+*}
of_log=no
while read -r dash name blob; do
    [ "$dash" = '—' ] || bad "the checkpoint has a line that is no signature"
    blob=$(unbase "$blob" | hex)
    [ "$name" = "$origin" ] && [ "${blob:0:8}" = "$id" ] || continue
    octets "${blob:8}" >"$place/sig"
    signed "$place/log.pem" "$place/sig" "$place/text" || bad "the log's signature of the checkpoint does not verify"
    of_log=yes
done < <(sed '1,/^$/d' $note)
ended='select(.stream == "ledger" and (.type == "key.retired.v1" or .type == "key.revoked.v1")) | .type'
which_keys="a key of this log was retired or revoked: which keys still speak is for a2a_verify.py"
if [ $of_log = no ]; then
    if find data/records -name '*.json' -print0 | xargs -0 -r jq -r "$ended" 2>/dev/null | grep -q .; then undecided "$which_keys"; fi
    bad "your key did not sign the checkpoint"
fi

# 3, 4, 8 Each leaf has one spelling, its proof leads to that root (P), and its record is what it commits to (C1).
proved() { # proved INDEX LEAF-HASH PROOF: RFC 9162, section 2.1.3.2
    local at=$1 last=$((size - 1)) made=$2 line
    while read -r line; do
        line=$(unbase "$line" | hex)
        [ "${#line}" -eq 64 ] && [ $last -ne 0 ] || return 1
        if ((at % 2)) || [ $at -eq $last ]; then
            made=$({ printf '\1'; octets "$line$made"; } | hash)
            while ((at % 2 == 0 && at)); do at=$((at / 2)) last=$((last / 2)); done
        else
            made=$({ printf '\1'; octets "$made$line"; } | hash)
        fi
        at=$((at / 2)) last=$((last / 2))
    done < <(sed '/^$/,$d' "$3" | sed 1,2d)
    [ $last -eq 0 ] && [ "$made" = "$root" ]
}
[ "$(sed 1d $log/index.tsv | wc -l)" = "$(wc -l <$log/events.jsonl)" ] || bad "index.tsv has not one row for each leaf"
count=0 before=-1
: >"$place/keys"
exec 3< <(sed 1d $log/index.tsv)
while IFS= read -r leaf; do
    count=$((count + 1))
    IFS=$'\t' read -r line n _ <&3
    [[ $leaf =~ ^\{\"c\":\"([0-9a-f]{64})\",\"log\":\"([^\"]*)\",\"n\":([0-9]{1,17}),\"t\":\"[0-9a-f]{64}\",\"v\":1\}$ ]] || bad "line $count of events.jsonl is no leaf"
    c=${BASH_REMATCH[1]}
    [ "${BASH_REMATCH[2]}" = "$origin" ] && [ "$line" = $count ] && [ "${BASH_REMATCH[3]}" = "$n" ] && [ "$n" -gt $before ] || bad "line $count of events.jsonl is not what index.tsv lists, or of another log"
    before=$n proof=$log/proofs/$n.tlog-proof
    [ -f "$proof" ] && [ "$(sed -n 1p "$proof")" = c2sp.org/tlog-proof@v1 ] && [ "$(sed -n 2p "$proof")" = "index $n" ] || bad "leaf $n has no proof"
    sed '1,/^$/d' "$proof" | cmp -s - $note || bad "the proof of leaf $n leads to another checkpoint"
    proved "$n" "$({ printf '\0'; printf '%s' "$leaf"; } | hash)" "$proof" || bad "leaf $n is not under the checkpoint"
    record=data/records/$n
    [ -f $record.json ] && [ "$(wc -c 2>/dev/null <$record.salt)" = 32 ] || bad "record $n, or its salt, is missing"
    [ "$({ printf 'a2a-ledger/record/v1\0'; cat $record.salt $record.json; } | hash)" = "$c" ] || bad "record $n is not what leaf $n commits to"
    jq -r 'select(.stream == "ledger" and .type == "key.added.v1" and .data.role == "export") | .data.vkey' $record.json >>"$place/keys" || bad "record $n is no JSON"
    [ -z "$(jq -r "$ended" $record.json)" ] || undecided "$which_keys"
done <$log/events.jsonl
[ $count -gt 0 ] || bad "no leaf is shown"

# 9 The exporter's two signatures (I), by the export key that the log names in an event under that checkpoint.
promised=$(jq -r '.signed | tostring' data/claims.json) || bad "claims.json is no JSON"
there=$([ -f tagmanifest-sha256.txt.sig ] && [ -f data/export.dsse.json ] && echo true || echo false)
[ "$promised" = "$there" ] || bad "the exporter's signatures are not there as claims.json says"
if [ "$promised" = true ]; then
    statement=data/export.dsse.json
    jq -r .payload $statement | base64 -d >"$place/payload" 2>/dev/null || bad "the export's statement cannot be read"
    type=$(jq -r .payloadType $statement)
    { printf 'DSSEv1 %d %s %d ' ${#type} "$type" "$(wc -c <"$place/payload")"; cat "$place/payload"; } >"$place/pae"
    jq -r '.signatures[0].sig' $statement | base64 -d >"$place/sig" 2>/dev/null || bad "the export's statement is not signed"
    by=no
    while read -r vkey; do
        pem_of "$vkey" "$place/export.pem" || bad "an export key of the log is none"
        signed "$place/export.pem" tagmanifest-sha256.txt.sig tagmanifest-sha256.txt || continue
        signed "$place/export.pem" "$place/sig" "$place/pae" || continue
        by=$vkey
    done <"$place/keys"
    [ "$by" != no ] || bad "the exporter's signatures are by no export key of the log"
    about=$(jq -r '.subject[0].name + " " + .subject[0].digest.sha256' "$place/payload")
    [ "$about" = "$log/events.jsonl $(hash <$log/events.jsonl)" ] || bad "the exporter signed other leaves than are shown"
fi

# 10 Time tokens (T), by the root that you gave.
times=
for token in data/time/[0-9].tsr; do
    [ -f "$token" ] || continue
    note=${token%.tsr}.checkpoint
    [ -f "$note" ] || bad "$token is over no checkpoint"
    over="a head of $(sed -n 2p "$note" | tr -dc 0-9) events"
    if [ -z "$time_root" ]; then
        times+="NOT CHECKED: $token, a time token over $over: give the root certificate of its authority"$'\n'
    elif openssl ts -verify -data "$note" -in "$token" -CAfile "$time_root" >/dev/null 2>&1; then
        when=$(openssl ts -reply -in "$token" -text 2>/dev/null | sed -n 's/^Time stamp: //p' | tr -dc 'A-Za-z0-9:. ')
        known=$(cmp -s "$note" $log/checkpoint && echo "which is this checkpoint" || echo "that it leads on to this checkpoint is NOT CHECKED")
        times+="VALID: $token says by your root that $over existed at $when (T); $known"$'\n'
    else
        undecided "openssl ts -verify does not take $token over $note by your root"
    fi
done

echo "VALID: files intact (I), signed by $([ "$promised" = true ] && echo "the log's exporter" || echo nobody)"
echo "VALID: checkpoint $size of $origin is signed by your key (L)"
echo "VALID: $count leaves are under it (P), and $count records are what they commit to"
printf '%s' "$times"
echo "NOT CHECKED: blobs, streams and their ends, holes, findings, replay, witnesses, strict zip and JSON: see a2a_verify.py"
