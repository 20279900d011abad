package client_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/testkit"
)

// A keyVector is a row of schema/keys.json. Without a Want, it is an ErrValidation.
type keyVector struct {
	Address, Text string
	Prefix        *int
	Key           *string
	KeyHex        string
	Fold          *bool
	Want          string
}

// key returns the vector's key; nil: it has none.
func (v keyVector) key(t *testing.T) []byte {
	t.Helper()
	if v.Key != nil {
		return []byte(*v.Key)
	}
	key := testkit.Must(hex.DecodeString(v.KeyHex))(t)
	if v.KeyHex == "" {
		return nil
	}
	return key
}

func TestTheVectorsOfKeys(t *testing.T) {
	text := testkit.Must(os.ReadFile("../schema/keys.json"))(t)
	var all struct{ IPKey, AccountKey []keyVector }
	if err := json.Unmarshal(text, &all); err != nil || len(all.IPKey) < 100 || len(all.AccountKey) < 40 {
		t.Fatalf("%d and %d vectors, %v", len(all.IPKey), len(all.AccountKey), err)
	}
	for _, v := range all.IPKey {
		o := client.IPOptions{Key: v.key(t)}
		if v.Prefix != nil {
			o.Prefix = *v.Prefix
		}
		if v.Prefix != nil && o.Prefix == 0 { // the default in Go
			continue
		}
		got, err := client.IPKey(v.Address, o)
		checkKey(t, v, got, err)
	}
	for _, v := range all.AccountKey {
		key := v.key(t)
		got, err := client.AccountKey(v.Text, client.AccountOptions{Key: key, NoKey: key == nil, NoFold: v.Fold != nil && !*v.Fold})
		checkKey(t, v, got, err)
	}
}

// checkKey checks that a key is the wanted one and a valid id, or that the error shows nothing.
func checkKey(t *testing.T, v keyVector, got string, err error) {
	t.Helper()
	switch {
	case got != v.Want, (err == nil) != (v.Want != ""):
		t.Errorf("%+v: %q, %v", v, got, err)
	case err == nil && input.CheckUserID(got) != nil:
		t.Errorf("%+v: %q is no user id", v, got)
	case err != nil && !errors.Is(err, client.ErrValidation):
		t.Errorf("%+v: %v, want an ErrValidation", v, err)
	case err != nil && len(v.Address+v.Text) > 4 && strings.Contains(err.Error(), v.Address+v.Text):
		t.Errorf("%+v: %v shows it", v, err)
	}
}

// What no vector can say, because JSON has no bytes and other languages no zero value.
func TestMistakesOfKeys(t *testing.T) {
	key := []byte("correct horse battery staple")
	for name, err := range map[string]error{
		"Key is missing, want at least 16 bytes, or NoKey":                  accountError("ann", client.AccountOptions{}),
		"Key and NoKey are both set, want one of them":                      accountError("ann", client.AccountOptions{Key: key, NoKey: true}),
		"Key has 0 bytes, want at least 16":                                 accountError("ann", client.AccountOptions{Key: []byte{}}),
		"Key has 15 bytes, want at least 16":                                accountError("ann", client.AccountOptions{Key: key[:15]}),
		"the account's name is not UTF-8":                                   accountError("ann\xff", client.AccountOptions{Key: key}),
		"the account's name is empty":                                       accountError(" \r\n", client.AccountOptions{Key: key, NoFold: true}),
		"Prefix is -1, want 1 to 128":                                       ipError("::1", client.IPOptions{Prefix: -1}),
		"Prefix is 129, want 1 to 128":                                      ipError("192.0.2.1", client.IPOptions{Prefix: 129}),
		"the address is no IPv4 or IPv6 address, with or without a port":    ipError("192.0.2.1\xff", client.IPOptions{}),
		"Key has 0 bytes, want at least 16 (as in []byte(os.Getenv(NONE)))": ipError("192.0.2.1", client.IPOptions{Key: []byte("")}),
	} {
		want, _, _ := strings.Cut(name, " (")
		if !errors.Is(err, client.ErrValidation) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, surrogate := range []string{"\xed\xa0\x80", "\xed\xbf\xbf", "a\xc0\x80", "\xf4\x90\x80\x80", "\xe2\x82"} {
		if err := accountError(surrogate, client.AccountOptions{NoKey: true}); !errors.Is(err, client.ErrValidation) {
			t.Errorf("%q: %v, want an ErrValidation", surrogate, err)
		}
	}
}

func accountError(text string, o client.AccountOptions) error {
	_, err := client.AccountKey(text, o)
	return err
}

func ipError(address string, o client.IPOptions) error {
	_, err := client.IPKey(address, o)
	return err
}
