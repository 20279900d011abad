package fuzz_test

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/input"
)

// The key of an address or of a name is a valid user id, or an ErrValidation. Two addresses have the same key
// if, and only if, they are in the same network; two names, if they differ only in what is folded.
func FuzzKeys(f *testing.F) {
	for _, seed := range []struct {
		text, other string
		prefix      int
		key         string
	}{
		{"192.0.2.1", "192.0.2.2", 64, ""},
		{"192.0.2.1:443", "::ffff:192.0.2.1", 24, "a secret of 16 or more"},
		{"2001:db8::1", "[2001:DB8:0:0:ffff::]:443", 64, "a secret of 16 or more"},
		{"2001:db8::1", "2001:db8:0:1::1", 48, ""},
		{"fe80::1%eth0", "[fe80::2%25en0]:1", 128, "short"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::", 1, ""},
		{"::ffff:0:1.2.3.4", "::1.2.3.4", 129, ""},
		{" Ann@example.com\r\n", "ann@EXAMPLE.com", 0, "a secret of 16 or more"},
		{"\u212aelvin", "kelvin", 0, "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\v\f\r\x0e\x0f"},
		{"\xed\xa0\x80", "\t\n ", -1, ""},
	} {
		f.Add(seed.text, seed.other, seed.prefix, seed.key)
	}
	f.Fuzz(func(t *testing.T, text, other string, prefix int, key string) {
		addressKeys(t, text, other, client.IPOptions{Prefix: prefix, Key: secret(key)})
		o := client.AccountOptions{Key: secret(key), NoKey: key == ""}
		nameKeys(t, text, other, o)
		o.NoFold = true
		nameKeys(t, text, other, o)
	})
}

// secret returns a key, which is nil for an empty text.
func secret(key string) []byte {
	if key == "" {
		return nil
	}
	return []byte(key)
}

func addressKeys(t *testing.T, text, other string, o client.IPOptions) {
	t.Helper()
	got, err := client.IPKey(text, o)
	validKey(t, text, got, err)
	another, failed := client.IPKey(other, o)
	if err != nil || failed != nil {
		return
	}
	length := o.Prefix
	if length == 0 {
		length = 64
	}
	if same := network(t, text, length) == network(t, other, length); same != (got == another) {
		t.Fatalf("%q has the key %q and %q %q, /%d", text, got, other, another, length)
	}
}

// network returns the address or the network of an address that has a key. It finds the address in another way: as the
// longest part that package net can read.
func network(t *testing.T, text string, length int) string {
	t.Helper()
	host := strings.TrimPrefix(text, "[")
	host, _, _ = strings.Cut(host, "]")
	host, _, _ = strings.Cut(host, "%")
	if strings.Count(host, ":") == 1 {
		host, _, _ = strings.Cut(host, ":")
	}
	ip := net.ParseIP(host)
	switch {
	case ip == nil:
		t.Fatalf("%q has a key, and no address is in it", text)
	case ip.To4() != nil:
		return ip.String()
	}
	return ip.Mask(net.CIDRMask(length, 128)).String() + "/" + strconv.Itoa(length)
}

func nameKeys(t *testing.T, text, other string, o client.AccountOptions) {
	t.Helper()
	got, err := client.AccountKey(text, o)
	validKey(t, text, got, err)
	another, failed := client.AccountKey(other, o)
	if err != nil || failed != nil {
		return
	}
	if same := plain(text, o.NoFold) == plain(other, o.NoFold); same != (got == another) {
		t.Fatalf("%q has the key %q and %q %q", text, got, other, another)
	}
}

// plain returns what of a name counts.
func plain(name string, asItIs bool) string {
	if asItIs {
		return name
	}
	b := []byte(name)
	for len(b) > 0 && strings.IndexByte(" \t\r\n", b[0]) >= 0 {
		b = b[1:]
	}
	for len(b) > 0 && strings.IndexByte(" \t\r\n", b[len(b)-1]) >= 0 {
		b = b[:len(b)-1]
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

func validKey(t *testing.T, text, key string, err error) {
	t.Helper()
	switch {
	case err == nil && input.CheckUserID(key) != nil:
		t.Fatalf("%q has the key %q, which is no user id", text, key)
	case err != nil && !errors.Is(err, client.ErrValidation):
		t.Fatalf("%q: %v, want an ErrValidation", text, err)
	}
}
