package client

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"
)

// IPOptions configure [IPKey]. The zero value of each field means its default.
type IPOptions struct {
	// Prefix is how many bits of an IPv6 address count, 1 to 128. The default is 64, because a
	// home or a phone has at least a /64 and can take any address in it.
	Prefix int

	// Key is a secret of at least 16 bytes. With it, the result is 32 hex digits that do not show
	// the address. Nil means that the address itself is the result; an empty Key is an error.
	Key []byte
}

// IPKey returns the user id, or the id of a subject, of somebody who has no account: of their IP
// address. An IPv4 address stays as it is. An IPv6 address becomes its network, such as
// 2001:db8::/64, in the form of RFC 5952. An IPv4-mapped address, such as ::ffff:192.0.2.1, is the
// IPv4 address.
//
// The address may have a port, brackets and a zone, as in "[2001:db8::1]:443", "192.0.2.1:443" or
// "fe80::1%eth0", and so fits [net/http.Request].RemoteAddr. These never are in the result. Behind
// a proxy, pass the address that the proxy has seen, because users can send any X-Forwarded-For.
// Anything else, such as a leading zero in IPv4 or a space, is an ErrValidation.
func IPKey(address string, o IPOptions) (string, error) {
	prefix := cmp.Or(o.Prefix, 64)
	if prefix < 1 || prefix > 128 {
		return "", wrongKey("Prefix is %d, want 1 to 128", prefix)
	}
	if o.Key != nil && len(o.Key) < minKey {
		return "", shortKey(o.Key)
	}
	addr, ok := parseAddress(address)
	if !ok {
		return "", wrongKey("the address is no IPv4 or IPv6 address, with or without a port")
	}
	text := addr.String()
	if addr.Is6() {
		text = netip.PrefixFrom(addr, prefix).Masked().String()
	}
	if o.Key == nil {
		return text, nil
	}
	return keyed(o.Key, text), nil
}

// parseAddress reads an address without its port, brackets and zone. An IPv4-mapped address
// becomes the IPv4 address.
func parseAddress(text string) (addr netip.Addr, ok bool) {
	inside, bracketed := strings.CutPrefix(text, "[")
	switch {
	case bracketed:
		var after string
		if text, after, ok = strings.Cut(inside, "]"); !ok {
			return addr, false
		}
		if port, has := strings.CutPrefix(after, ":"); has != (after != "") || has && !isPort(port) {
			return addr, false
		}
	case strings.Count(text, ":") == 1:
		var port string
		if text, port, _ = strings.Cut(text, ":"); !isPort(port) {
			return addr, false
		}
	}
	text, zone, zoned := strings.Cut(text, "%")
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Is4() && (bracketed || zoned) || zoned && !isZone(zone) {
		return addr, false
	}
	return addr.Unmap(), true
}

// isPort reports whether a text is 0 to 65535, in at most five digits.
func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil && len(text) <= 5
}

// isZone reports whether a text can be a zone: letters, digits, and - . _ ~ of RFC 6874.
func isZone(text string) bool {
	for i := range len(text) {
		if !isWord(text, i) && strings.IndexByte("-._~", text[i]) < 0 {
			return false
		}
	}
	return text != ""
}

// AccountOptions configure [AccountKey].
type AccountOptions struct {
	// Key is a secret of at least 16 bytes, the same in each backend that asks. It is required,
	// because without it, somebody who reads a table can try all likely names. NoKey says that plain
	// SHA-256 is meant.
	Key   []byte
	NoKey bool

	// NoFold takes the text as it is. Use it if your database tells Ann from ann.
	NoFold bool
}

// AccountKey returns the user id, or the id of a subject, for the name of an account, such as a
// mail address that somebody types to sign in. It is the first 32 hex digits of an HMAC-SHA-256. The
// spaces, tabs and line ends around the text go before that, and A to Z become a to z. No other
// letters change, because languages and versions of Unicode disagree about them.
//
// Pass the name as your database compares it. If the account is known, its own id is the better
// user id. A text of spaces, and one that is not UTF-8, is an ErrValidation.
func AccountKey(text string, o AccountOptions) (string, error) {
	switch {
	case o.NoKey && o.Key != nil:
		return "", wrongKey("Key and NoKey are both set, want one of them")
	case o.NoKey:
	case o.Key == nil:
		return "", wrongKey("Key is missing, want at least %d bytes, or NoKey", minKey)
	case len(o.Key) < minKey:
		return "", shortKey(o.Key)
	}
	if !utf8.ValidString(text) {
		return "", wrongKey("the account's name is not UTF-8")
	}
	trimmed := strings.Trim(text, " \t\r\n")
	if trimmed == "" {
		return "", wrongKey("the account's name is empty")
	}
	if !o.NoFold {
		text = strings.Map(func(r rune) rune {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			return r
		}, trimmed)
	}
	if o.NoKey {
		sum := sha256.Sum256([]byte(text))
		return short(sum[:]), nil
	}
	return keyed(o.Key, text), nil
}

// minKey is how many bytes a secret has at least.
const minKey = 16

// keyed returns the first half of the HMAC-SHA-256 of a text, in hex digits.
func keyed(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return short(mac.Sum(nil))
}

// short returns the first 32 hex digits of a sum, so that a user id has room for two.
func short(sum []byte) string { return hex.EncodeToString(sum[:16]) }

func shortKey(key []byte) error {
	return wrongKey("Key has %d bytes, want at least %d", len(key), minKey)
}

// wrongKey returns an ErrValidation. It must not show the address or the name.
func wrongKey(format string, args ...any) error {
	return &Error{Kind: ErrValidation, Message: fmt.Sprintf(format, args...)}
}
