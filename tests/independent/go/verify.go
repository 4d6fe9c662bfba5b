// Checks the log part of an unpacked bundle with the Go checksum database's own code: golang.org/x/mod/sumdb.
//
//	verify BAG LOG-VKEY [EARLIER-NOTE]
//
// The checkpoint by the log's key (note), each leaf shown against its proof (tlog.CheckRecord), and, if an earlier note
// is given, that the log only grew since (tlog.CheckTree). Exit 0 and one line of counts, or 1 and one line that says why.
package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type head struct {
	origin string
	size   int64
	root   tlog.Hash
}

func main() {
	said, err := verify(os.Args[1], os.Args[2], os.Args[3:])
	if err != nil {
		fmt.Println("refused:", err)
		os.Exit(1)
	}
	fmt.Println(said)
}

func verify(bag, vkey string, earlier []string) (string, error) {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return "", err
	}
	log := filepath.Join(bag, "data", "log")
	signed, err := os.ReadFile(filepath.Join(log, "checkpoint"))
	if err != nil {
		return "", err
	}
	now, err := open(signed, verifier)
	if err != nil {
		return "", err
	}
	shown, err := os.ReadFile(filepath.Join(log, "events.jsonl"))
	if err != nil {
		return "", err
	}
	leaves := strings.Split(strings.TrimSuffix(string(shown), "\n"), "\n")
	index, err := os.ReadFile(filepath.Join(log, "index.tsv"))
	if err != nil {
		return "", err
	}
	rows := strings.Split(strings.TrimSuffix(string(index), "\n"), "\n")[1:]
	if len(rows) != len(leaves) {
		return "", errors.New("index.tsv has not one row for each leaf")
	}
	for i, leaf := range leaves {
		number := strings.Split(rows[i], "\t")[1]
		if err := included(filepath.Join(log, "proofs", number+".tlog-proof"), number, leaf, string(signed), now); err != nil {
			return "", fmt.Errorf("leaf %s: %w", number, err)
		}
	}
	for _, file := range earlier {
		if err := grew(log, file, verifier, now); err != nil {
			return "", fmt.Errorf("earlier head: %w", err)
		}
	}
	return fmt.Sprintf("%d leaves under %d, grown from %d earlier heads", len(leaves), now.size, len(earlier)), nil
}

func open(signed []byte, verifier note.Verifier) (head, error) {
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return head{}, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 4 || lines[0] != verifier.Name() {
		return head{}, errors.New("the note is no checkpoint of that log")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return head{}, err
	}
	root, err := tlog.ParseHash(lines[2])
	return head{lines[0], size, root}, err
}

func hashes(lines []string) ([]tlog.Hash, error) {
	var found []tlog.Hash
	for _, line := range lines {
		octets, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(octets) != tlog.HashSize {
			return nil, errors.New("a line of the proof is no hash")
		}
		found = append(found, tlog.Hash(*(*[tlog.HashSize]byte)(octets)))
	}
	return found, nil
}

func included(file, number, leaf, signed string, now head) error {
	octets, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	proof, rest, found := strings.Cut(string(octets), "\n\n")
	lines := strings.Split(proof, "\n")
	if !found || rest != signed || len(lines) < 2 || lines[0] != "c2sp.org/tlog-proof@v1" || lines[1] != "index "+number {
		return errors.New("no proof of this leaf under this checkpoint")
	}
	path, err := hashes(lines[2:])
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return err
	}
	return tlog.CheckRecord(tlog.RecordProof(path), now.size, now.root, at, tlog.RecordHash([]byte(leaf)))
}

func grew(log, file string, verifier note.Verifier, now head) error {
	octets, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, err := open(octets, verifier)
	if err != nil {
		return err
	}
	proof, err := os.ReadFile(filepath.Join(log, "consistency", fmt.Sprintf("%d-%d", before.size, now.size)))
	if err != nil {
		return err
	}
	path, err := hashes(strings.Split(strings.TrimSuffix(string(proof), "\n"), "\n"))
	if err != nil {
		return err
	}
	return tlog.CheckTree(tlog.TreeProof(path), now.size, now.root, before.size, before.root)
}
