package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/input"
)

// keyCommand groups the commands that make the user ids of strangers, as the clients do.
type keyCommand struct {
	IP      keyIPCommand      `cmd:"" name:"ip" help:"Print what the clients send for an IP address."`
	Account keyAccountCommand `cmd:"" help:"Print what the clients send for the name of an account, from standard input."`
}

func (keyCommand) Help() string {
	return `Examples:
  guards key ip 2001:db8::1
  guards key account --key-file key < name`
}

// keyFlags are the flags of both commands.
type keyFlags struct {
	KeyFile string `placeholder:"F" help:"The file with the secret that the clients have as key, of at least 16 bytes. Default: none."`
	JSON    bool   `name:"json" help:"Print one JSON document."`
}

type keyIPCommand struct {
	Address string `arg:"" help:"Such as 192.0.2.1 or 2001:db8::1, also with a port, brackets or a zone."`
	Prefix  int    `default:"64" placeholder:"N" help:"How many bits of an IPv6 address count, 1 to 128 (${default})."`
	keyFlags
}

func (keyIPCommand) Help() string {
	return `Give the same --prefix and key as the app. A text in the file of a key may end with a line
end, which is not part of the key. Nothing is sent. Examples:
  guards key ip 2001:db8::1
  guards key ip 192.0.2.1 --key-file key --json
  guards reset {activity} --user "$(guards key ip 2001:db8::1)"`
}

func (c *keyIPCommand) Run(env session) error {
	if c.Prefix < 1 || c.Prefix > 128 { // 0 is the default of the client
		return input.Invalid("--prefix", fmt.Sprint(c.Prefix), "1 to 128")
	}
	o := client.IPOptions{Prefix: c.Prefix}
	if _, err := client.IPKey(c.Address, o); err != nil {
		return input.Invalid("<address>", input.Show(c.Address), "an IPv4 or IPv6 address, with or without a port")
	}
	var err error
	if o.Key, err = c.key(); err != nil {
		return err
	}
	key, err := client.IPKey(c.Address, o)
	return c.print(env, key, err)
}

type keyAccountCommand struct {
	NoFold bool `help:"Take the name as it is, as the clients do with fold: false."`
	keyFlags
}

func (keyAccountCommand) Help() string {
	return `The name is one line of standard input, so that no history of a shell has it. Without
--key-file it is hashed without a key, as the clients do if their key is null. A text in the
file of a key may end with a line end, which is not part of the key. Nothing is sent. Examples:
  guards key account --key-file key < name
  guards status --user "$(guards key account --key-file key < name)"`
}

// maxName is the size of the longest name of an account that the command reads, in bytes.
const maxName = 1 << 20

func (c *keyAccountCommand) Run(env session) error {
	o := client.AccountOptions{NoFold: c.NoFold, NoKey: c.KeyFile == ""}
	var err error
	if o.Key, err = c.key(); err != nil {
		return err
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		env.note("type the name of the account, Enter, and Ctrl-D")
	}
	text, err := io.ReadAll(io.LimitReader(os.Stdin, maxName+1))
	if err != nil {
		return err
	}
	name := string(withoutLineEnd(text))
	switch {
	case len(text) > maxName:
		return errors.New("standard input has more than 1 MiB, want the name of one account")
	case strings.ContainsAny(strings.Trim(name, " \t\r\n"), "\r\n"):
		return errors.New("standard input has several lines, want the name of one account")
	}
	key, err := client.AccountKey(name, o)
	return c.print(env, key, err)
}

// key returns the secret of --key-file; nil: it is not given.
func (c keyFlags) key() ([]byte, error) {
	if c.KeyFile == "" {
		return nil, nil
	}
	key, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("--key-file: %w", err)
	}
	if utf8.Valid(key) { // other bytes are a key that was never a line
		key = withoutLineEnd(key)
	}
	if _, err := client.AccountKey("any", client.AccountOptions{Key: key}); err != nil { // it is too short
		return nil, fmt.Errorf("--key-file: %w", err)
	}
	return key, nil
}

// withoutLineEnd returns a text without one line end at its end.
func withoutLineEnd(text []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
}

// print prints a key, unless there is an error.
func (c keyFlags) print(env session, key string, err error) error {
	if err != nil {
		return err
	}
	return env.print(c.JSON, map[string]string{"key": key}, key)
}

// noteAddress tells that the clients send another text for an address, such as an IPv6 address that is no network.
func (c session) noteAddress(subject, id string) {
	if sent, err := client.IPKey(id, client.IPOptions{}); subject == "ip" && err == nil && sent != id {
		c.note("ipKey of the clients sends " + sent + " for this address, so a block of " + id + " stops nobody: see guards key ip --help")
	}
}
