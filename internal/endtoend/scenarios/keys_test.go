package scenarios_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	guards "github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/testkit"
)

// A keyQuestion is a line that the programs keys.mjs and keys.py read. They answer with a key or with the name of
// an error.
type keyQuestion struct {
	Account bool     `json:"account,omitzero"` // it is about a name, otherwise about an address
	Text    *string  `json:"text,omitzero"`    // the name or the address; or
	Units   []uint16 `json:"units,omitempty"`  // its UTF-16, which can have surrogates without a partner
	Prefix  *int     `json:"prefix,omitzero"`
	Key     []byte   `json:"key,omitzero"` // nil: none
	KeyText *string  `json:"keyText,omitzero"`
	Fold    *bool    `json:"fold,omitzero"`
}

// A keyVector is a row of schema/keys.json.
type keyVector struct {
	Address, Text, Key *string
	KeyHex, Want       string
	Prefix             *int
	Fold               *bool
}

// inGo returns what the Go client answers.
func (q keyQuestion) inGo() string {
	text, key := bytesOf(q.Units), q.Key
	if q.Text != nil {
		text = *q.Text
	}
	if q.KeyText != nil {
		key = []byte(*q.KeyText)
	}
	var got string
	var err error
	switch {
	case q.Account:
		got, err = guards.AccountKey(text, guards.AccountOptions{Key: key, NoKey: key == nil, NoFold: q.Fold != nil && !*q.Fold})
	case q.Prefix != nil && *q.Prefix == 0: // the default in Go
		return "ValidationError"
	default:
		o := guards.IPOptions{Key: key}
		if q.Prefix != nil {
			o.Prefix = *q.Prefix
		}
		got, err = guards.IPKey(text, o)
	}
	switch {
	case errors.Is(err, guards.ErrValidation):
		return "ValidationError"
	case err != nil:
		return err.Error()
	}
	return got
}

// bytesOf returns UTF-16 as UTF-8. A surrogate without a partner becomes three bytes that are not UTF-8.
func bytesOf(units []uint16) string {
	var b []byte
	for i := 0; i < len(units); i++ {
		r := rune(units[i])
		if utf16.IsSurrogate(r) {
			if i+1 < len(units) {
				if pair := utf16.DecodeRune(r, rune(units[i+1])); pair != utf8.RuneError {
					b = utf8.AppendRune(b, pair)
					i++
					continue
				}
			}
			b = append(b, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
			continue
		}
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

// sameKeys asks the clients of all languages. It checks that their answers are the same, each a valid id or a
// ValidationError, and returns them.
func sameKeys(t *testing.T, questions []keyQuestion) []string {
	t.Helper()
	var lines bytes.Buffer
	want := make([]string, len(questions))
	for i, q := range questions {
		testkit.OK(t, json.NewEncoder(&lines).Encode(q))
		want[i] = q.inGo()
		if want[i] != "ValidationError" && input.CheckUserID(want[i]) != nil {
			t.Errorf("Go: %s: %q is no user id", described(q), want[i])
		}
	}
	for _, language := range []string{"mjs", "py"} {
		command := app(t, language, fileOf(t, filepath.Join("testdata", "keys."+language)))
		cmd := exec.Command(command[0], command[1:]...)
		var failed bytes.Buffer
		cmd.Stdin, cmd.Stderr = bytes.NewReader(lines.Bytes()), &failed
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, &failed)
		}
		got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		if len(got) != len(want) {
			t.Fatalf("%s gives %d answers to %d questions\n%s", language, len(got), len(want), &failed)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: %q in %s, %q in Go", described(questions[i]), got[i], language, want[i])
			}
		}
	}
	return want
}

// described returns a question, shortened, for a message.
func described(q keyQuestion) string {
	text := bytesOf(q.Units)
	if q.Text != nil {
		text = *q.Text
	}
	q.Text, q.Units = nil, nil
	rest, _ := json.Marshal(q)
	return fmt.Sprintf("%.200q %s", text, rest)
}

// The three clients agree with schema/keys.json, which was made with other programs.
func TestTheClientsMakeTheKeysOfTheVectors(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	var all struct{ IPKey, AccountKey []keyVector }
	testkit.OK(t, json.Unmarshal(fileOf(t, filepath.Join(root, "schema", "keys.json")), &all))
	var questions []keyQuestion
	var want []string
	for _, v := range slices.Concat(all.IPKey, all.AccountKey) {
		q := keyQuestion{Account: v.Text != nil, Text: v.Address, Prefix: v.Prefix, KeyText: v.Key, Fold: v.Fold}
		if q.Account {
			q.Text = v.Text
		}
		if v.KeyHex != "" {
			q.Key = testkit.Must(hex.DecodeString(v.KeyHex))(t)
		}
		questions = append(questions, q)
		if v.Want == "" {
			v.Want = "ValidationError"
		}
		want = append(want, v.Want)
	}
	for i, got := range sameKeys(t, questions) {
		if got != want[i] {
			t.Errorf("%s: %q, want %q", described(questions[i]), got, want[i])
		}
	}
}

// Whatever a fuzzer gives to the clients, the result is a valid id or a ValidationError, the same in all three.
func TestTheClientsMakeTheSameKeysOfRandomInput(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	g := keyGenerator{rand.New(rand.NewPCG(53, 3))}
	var questions []keyQuestion
	for range 40_000 {
		questions = append(questions, g.question())
	}
	for _, text := range []string{ // long ones
		strings.Repeat("9", 1<<20), strings.Repeat(":", 1<<17), "::" + strings.Repeat("0", 1<<17), strings.Repeat("1.", 1<<17),
		"fe80::1%" + strings.Repeat("z", 1<<17), "1.2.3.4" + strings.Repeat(" ", 1<<17), "[" + strings.Repeat("::1%", 1<<15),
	} {
		questions = append(questions, keyQuestion{Text: &text}, keyQuestion{Text: &text, Account: true})
	}
	valid := map[bool]int{}
	for i, got := range sameKeys(t, questions) {
		if got != "ValidationError" {
			valid[questions[i].Account]++
		}
	}
	if valid[false] < 5_000 || valid[true] < 5_000 || valid[false] > 18_000 || valid[true] > 18_000 {
		t.Errorf("%d addresses and %d names have a key, want a good part and not all", valid[false], valid[true])
	}
}

// A keyGenerator makes random questions: right ones, and some with a change or two.
type keyGenerator struct{ *rand.Rand }

func (g keyGenerator) question() keyQuestion {
	q := keyQuestion{Account: g.IntN(2) == 0}
	if g.IntN(3) > 0 {
		length := 16 + g.IntN(60)
		if g.IntN(20) == 0 {
			length = g.IntN(18)
		}
		q.Key = make([]byte, length)
		for i := range q.Key {
			q.Key[i] = byte(g.Uint32())
		}
	}
	text := g.address()
	if q.Account {
		text = g.name()
		q.Fold = new(g.IntN(2) == 0)
	} else if g.IntN(2) == 0 {
		q.Prefix = new(g.IntN(133) - 2)
	}
	q.Units = utf16.Encode([]rune(text))
	for range max(0, g.IntN(5)-2) {
		q.Units = g.changed(q.Units)
	}
	return q
}

// changed returns a text with a unit that is inserted, removed or replaced.
func (g keyGenerator) changed(units []uint16) []uint16 {
	at := g.IntN(len(units) + 1)
	rest := units[at:]
	if len(rest) > 0 && g.IntN(2) == 0 {
		rest = rest[1:]
	}
	var unit []uint16
	if g.IntN(4) > 0 {
		unit = []uint16{g.unit()}
	}
	return slices.Concat(units[:at], unit, rest)
}

// unit returns a character that means something in an address or a name, or any.
func (g keyGenerator) unit() uint16 {
	special := utf16.Encode([]rune("0123456789abcdefABCDEFgGzZ::::....%[]/-_~+@, \t\r\n\x00\v\f\x1c\x7f\u0085\u00a0\u0130\u0131\u017f\u212a\u2003\u2028\ufeff\u0661\uff11\ufffd"))
	switch g.IntN(12) {
	case 0:
		return uint16(g.Uint32())
	case 1:
		return uint16(0xd800 + g.IntN(0x800)) // a surrogate
	}
	return special[g.IntN(len(special))]
}

// address returns an address in one of its many forms.
func (g keyGenerator) address() string {
	var a [16]byte
	for i := range a {
		if g.IntN(3) > 0 {
			a[i] = byte(g.Uint32())
		}
	}
	if g.IntN(2) == 0 { // long runs of zeros
		clear(a[g.IntN(16):])
		clear(a[:g.IntN(16)])
	}
	port := fmt.Sprintf(":%d", g.IntN(70_000))
	switch g.IntN(3) {
	case 0:
		return netip.AddrFrom4([4]byte(a[:4])).String() + g.maybe(port)
	case 1:
		copy(a[:], "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff")
	}
	text := netip.AddrFrom16(a).String()
	switch g.IntN(4) {
	case 0:
		text = netip.AddrFrom16(a).StringExpanded()
	case 1: // dotted at its end, with and without ::
		groups := strings.Split(netip.AddrFrom16(a).StringExpanded(), ":")
		if len(groups) == 8 {
			text = strings.Join(groups[:6], ":") + fmt.Sprintf(":%d.%d.%d.%d", a[12], a[13], a[14], a[15])
		}
	case 2:
		text = strings.Replace(netip.AddrFrom16(a).StringExpanded(), ":0000:", "::", 1)
	}
	if g.IntN(2) == 0 {
		text = strings.ToUpper(text)
	}
	text += g.maybe("%" + []string{"eth0", "1", "25en0", "br-1.2", "", "a b"}[g.IntN(6)])
	if g.IntN(2) == 0 {
		return "[" + text + "]" + g.maybe(port)
	}
	return text
}

// name returns what somebody types as the name of an account.
func (g keyGenerator) name() string {
	units := make([]uint16, g.IntN(12))
	for i := range units {
		units[i] = g.unit()
		if g.IntN(2) == 0 {
			units[i] = uint16('A' + g.IntN(58))
		}
	}
	return g.maybe(" \t\r\n") + string(utf16.Decode(units)) + g.maybe("\r\n ")
}

func (g keyGenerator) maybe(text string) string {
	if g.IntN(3) == 0 {
		return text
	}
	return ""
}
