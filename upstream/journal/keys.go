package journal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
)

const (
	// minSecret is the shortest secret in bytes that a key is made of.
	minSecret = 16
	// idLen is the length of the id of a key.
	idLen = 8
)

// errKey says that an entry was encrypted with a key that is not configured.
var errKey = errors.New("the recorded request is unreadable: its key is not among switchover.journal.key_file and older_key_files")

// Keys encrypt and decrypt what the journal keeps.
type Keys struct {
	current keyID
	known   map[keyID]cipher.AEAD
}

type keyID [idLen]byte

// NewKeys makes keys of secrets. The first one encrypts, the others are tried for what was encrypted earlier. A secret has at least 16 bytes.
func NewKeys(current []byte, older ...[]byte) (*Keys, error) {
	k := &Keys{known: map[keyID]cipher.AEAD{}}
	for i, secret := range append([][]byte{current}, older...) {
		if len(bytes.TrimSpace(secret)) < minSecret {
			return nil, fmt.Errorf("is too short: use at least %d random bytes", minSecret)
		}
		// None of these fails for lengths that are right.
		material, _ := hkdf.Key(sha256.New, secret, nil, "portico journal", 32+idLen)
		block, _ := aes.NewCipher(material[:32])
		aead, _ := cipher.NewGCMWithRandomNonce(block) // which puts the nonce before the text
		id := keyID(material[32:])
		k.known[id] = aead
		if i == 0 {
			k.current = id
		}
	}
	return k, nil
}

// seal encrypts a text. What names what the text belongs to; open must get the same.
func (k *Keys) seal(text []byte, what string) []byte {
	return k.known[k.current].Seal(slices.Clone(k.current[:]), nil, text, []byte(what))
}

// open decrypts what seal made.
func (k *Keys) open(sealed []byte, what string) ([]byte, error) {
	if len(sealed) < idLen {
		return nil, errors.New("it is not there")
	}
	aead := k.known[keyID(sealed[:idLen])]
	if aead == nil {
		return nil, errKey
	}
	return aead.Open(nil, nil, sealed[idLen:], []byte(what))
}
