package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/limiter"
)

// newClient returns a client that asks a limiter in memory, which needs no AWS. Its clock
// stands at 12:00:15. An app passes Activities to ask the deployed functions.
func newClient(activities ...guards.Activity) *client.Guards {
	page := []guards.Guard{{Name: "photos-guard", Message: "Too many photos. Please try again later.", Activities: activities}}
	l, err := limiter.InMemory(page, func() time.Time { return time.Date(2026, 11, 28, 12, 0, 15, 0, time.UTC) })
	if err != nil {
		log.Fatal(err)
	}
	g, err := client.New(context.Background(), client.Options{Local: l})
	if err != nil {
		log.Fatal(err)
	}
	return g
}

var ctx = context.Background()

func Example() {
	g := newClient(guards.Activity{Name: "upload_photo", Limit: "10/1m"})
	err := g.Guarded(ctx, "upload_photo", client.Request{UserID: "u1"}, func(d client.Decision) error {
		fmt.Println("photos left in this minute:", d.Remaining)
		return nil // save the photo here
	})
	fmt.Println("error:", err)
	// Output:
	// photos left in this minute: 9
	// error: <nil>
}

func ExampleGuards_Check() {
	g := newClient(guards.Activity{Name: "upload_photo", Limit: "1/1m"})
	for range 2 {
		d, err := g.Check(ctx, "upload_photo", client.Request{UserID: "u1"})
		switch {
		case err != nil:
			fmt.Println(http.StatusInternalServerError, err)
		case !d.Allowed:
			fmt.Println(http.StatusTooManyRequests, d.Message, d.RetryAfter())
		default:
			fmt.Println(http.StatusCreated)
		}
	}
	// Output:
	// 201
	// 429 Too many photos. Please try again later. 45s
}

// Paying users have another limit. Both count in the same place.
func ExampleGuards_Check_tier() {
	g := newClient(guards.Activity{Name: "upload_photo", Limit: "1/1m", Tiers: guards.Tiers{"premium": "3/1m"}})
	for _, tier := range []string{"", "", "premium"} {
		d, _ := g.Check(ctx, "upload_photo", client.Request{UserID: "u1", Tier: tier})
		fmt.Println(d.Allowed, d.Limit, d.ActivityCount)
	}
	// Output:
	// true 1 1
	// false 1 1
	// true 3 2
}

// A request that is sent twice with the same id is counted once.
func ExampleGuards_Check_repeat() {
	g := newClient(guards.Activity{Name: "upload_photo", Limit: "10/1m"})
	for range 2 {
		d, _ := g.Check(ctx, "upload_photo", client.Request{UserID: "u1", RequestID: "photo-7"})
		fmt.Println(d.Reason, d.ActivityCount)
	}
	// Output:
	// ok 1
	// duplicate 1
}

// Of five photos, three still fit.
func ExampleGuards_Check_partial() {
	g := newClient(guards.Activity{Name: "upload_photo", Limit: "3/1m"})
	d, _ := g.Check(ctx, "upload_photo", client.Request{UserID: "u1", Count: 5, Partial: true})
	fmt.Println(d.Granted, d.Message)
	// Output: 3 Too many photos. Please try again later.
}

// An activity with subjects counts for each of them, and each has to allow it.
func ExampleGuards_Check_subjects() {
	g := newClient(guards.Activity{Name: "send_photo", Limit: "10/1m", Subjects: []guards.Subject{{Name: "room", Limit: "1/1m"}}})
	for _, user := range []string{"u1", "u2"} {
		d, _ := g.Check(ctx, "send_photo", client.Request{UserID: user, Subjects: map[string]string{"room": "r42"}})
		fmt.Printf("%t %q\n", d.Allowed, d.LimitedBy)
	}
	// Output:
	// true ""
	// false "room"
}

// An app sends one mail when 80 % are used, and one at the end.
func ExampleGuards_Check_crossed() {
	g := newClient(guards.Activity{Name: "upload_photo", Limit: "5/1m"})
	for range 5 {
		d, _ := g.Check(ctx, "upload_photo", client.Request{UserID: "u1"})
		if d.Crossed != 0 {
			fmt.Printf("mail: %d of %d photos are used\n", d.ActivityCount, d.Limit)
		}
	}
	// Output:
	// mail: 4 of 5 photos are used
	// mail: 5 of 5 photos are used
}

// A reservoir refuses now, and gives the job a place later.
func ExampleGuards_Check_delayed() {
	g := newClient(guards.Activity{Name: "convert", Limit: "reservoir 1/1m ahead 15m"})
	for _, job := range []string{"a", "b"} {
		d, _ := g.Check(ctx, "convert", client.Request{UserID: "u1", RequestID: job})
		fmt.Println(d.Reason, d.ReadyTime().UTC().Format(time.TimeOnly))
	}
	// Output:
	// ok 00:00:00
	// delayed 12:01:00
}

// A mistake is an error, and nothing is counted.
func ExampleGuards_Check_mistake() {
	g := newClient(guards.Activity{Name: "upload_photo", Limit: "10/1m"})
	_, err := g.Check(ctx, "uplaod_photo", client.Request{UserID: "u1"})
	fmt.Println(errors.Is(err, client.ErrValidation), err)
	// Output: true no guard is known for the activity "uplaod_photo"; do you mean upload_photo?
}

// Status decides, and counts nothing.
func ExampleGuards_Status() {
	g := newClient(guards.Activity{Name: "upload_photo", Limit: "10/1m", Label: "photos in this minute"})
	_, _ = g.Check(ctx, "upload_photo", client.Request{UserID: "u1", Count: 3})
	d, _ := g.Status(ctx, "upload_photo", client.Request{UserID: "u1"})
	fmt.Println(d.Display, d.ResetTime().UTC().Format(time.TimeOnly))
	// Output: photos in this minute: 3/10 12:01:00
}

// What was counted is given back if the photo can't be saved.
func ExampleGuards_Guarded() {
	g := newClient(guards.Activity{Name: "upload_photo", Limit: "1/1m"})
	full := errors.New("the disk is full")
	for _, outcome := range []error{full, nil, nil} {
		err := g.Guarded(ctx, "upload_photo", client.Request{UserID: "u1"}, func(client.Decision) error { return outcome })
		fmt.Println(err, errors.Is(err, client.ErrLimited))
	}
	// Output:
	// the disk is full false
	// <nil> false
	// Too many photos. Please try again later. true
}

// Two wrong passwords lock the account. A right one does not count.
func ExampleGuards_Attempt() {
	g := newClient(guards.Activity{Name: "sign_in", Limit: "lockout 2/15m for 1m"})
	for _, password := range []string{"right", "wrong", "right", "wrong", "right"} {
		r := client.Request{UserID: "account-7", OnLocked: func(d client.Decision) {
			fmt.Println("mail: locked until", d.ResetTime().UTC().Format(time.TimeOnly))
		}}
		ok, err := g.Attempt(ctx, "sign_in", r, func(context.Context, client.Decision) (bool, error) {
			return password == "right", nil
		})
		fmt.Println(ok, errors.Is(err, client.ErrLimited))
	}
	// Output:
	// true false
	// false false
	// true false
	// mail: locked until 12:01:15
	// false false
	// false true
}

// A decision can be stored as JSON, and given back later.
func ExampleGuards_ReleaseDecision() {
	g := newClient(guards.Activity{Name: "upload_photo", Limit: "10/1m"})
	d, _ := g.Check(ctx, "upload_photo", client.Request{UserID: "u1"})
	stored, _ := json.Marshal(d)

	var again client.Decision
	_ = json.Unmarshal(stored, &again)
	back, err := g.ReleaseDecision(ctx, again)
	fmt.Println(d.Remaining, back.Remaining, err)
	// Output: 9 10 <nil>
}

// An app reserves 400 tokens, and uses 140 of them.
func ExampleGuards_Settle() {
	g := newClient(guards.Activity{Name: "use_tokens", Limit: "1000/1d", Hold: true})
	reserved, _ := g.Check(ctx, "use_tokens", client.Request{UserID: "u1", Count: 400})
	err := g.Settle(ctx, reserved, 140)
	d, _ := g.Status(ctx, "use_tokens", client.Request{UserID: "u1"})
	fmt.Println(reserved.Remaining, d.Remaining, err)
	// Output: 600 860 <nil>
}

// One export runs at a time. The slot is renewed until its work ends.
func ExampleGuards_Slot() {
	g := newClient(guards.Activity{Name: "export", Limit: "log 1/10m"})
	slot, err := g.Slot(ctx, "export", client.Request{UserID: "u1"})
	if err != nil || !slot.Allowed {
		fmt.Println(err)
		return
	}
	beside, _ := g.Check(ctx, "export", client.Request{UserID: "u1"})
	fmt.Println("beside it:", beside.Allowed)
	_ = slot.Context() // for the work: it ends if the slot is lost
	slot.Release(ctx)
	after, _ := g.Check(ctx, "export", client.Request{UserID: "u1"})
	fmt.Println("after it:", after.Allowed)
	// Output:
	// beside it: false
	// after it: true
}

// A worker keeps its slot for ten more minutes.
func ExampleGuards_Renew() {
	g := newClient(guards.Activity{Name: "export", Limit: "log 1/10m"})
	d, _ := g.Check(ctx, "export", client.Request{UserID: "u1"})
	kept, _ := g.Renew(ctx, "export", client.Request{UserID: "u1", At: d.At, RequestID: d.RequestID})
	fmt.Println(kept.Allowed, kept.HeldTime().UTC().Format(time.TimeOnly))
	// Output: true 12:10:15
}

func ExampleGuards_Reset() {
	g := newClient(guards.Activity{Name: "upload_photo", Limit: "1/1m"})
	_, _ = g.Check(ctx, "upload_photo", client.Request{UserID: "u1"})
	_, _ = g.Reset(ctx, "upload_photo", client.Request{UserID: "u1"})
	d, _ := g.Check(ctx, "upload_photo", client.Request{UserID: "u1"})
	fmt.Println(d.Allowed)
	// Output: true
}

// At the start of an app, Ready finds a missing permission or a wrong name.
func ExampleGuards_Ready() {
	g := newClient(guards.Activity{Name: "upload_photo", Limit: "10/1m"})
	fmt.Println(g.Ready(ctx, "upload_photo"))
	// Output: <nil>
}

// Somebody signs up, so there is no account yet: the address is limited.
func ExampleIPKey() {
	key, err := client.IPKey("[2001:db8:1:2:3:4:5:6]:51034", client.IPOptions{}) // of a request's RemoteAddr
	fmt.Println(key, err)
	key, err = client.IPKey("[2001:db8:1:2:ffff::1]:49152", client.IPOptions{}) // the same home
	fmt.Println(key, err)
	key, err = client.IPKey("[::ffff:192.0.2.1]:51034", client.IPOptions{})
	fmt.Println(key, err)
	// Output:
	// 2001:db8:1:2::/64 <nil>
	// 2001:db8:1:2::/64 <nil>
	// 192.0.2.1 <nil>
}

// Somebody signs in with a name that no account may have.
func ExampleAccountKey() {
	secret := []byte("at least 16 secret bytes")
	key, err := client.AccountKey(" Ann@Example.com\n", client.AccountOptions{Key: secret})
	fmt.Println(key, err)
	key, err = client.AccountKey("ann@example.com", client.AccountOptions{Key: secret})
	fmt.Println(key, err)
	// Output:
	// d0c6486d9cdb48f02378d41249c8abd7 <nil>
	// d0c6486d9cdb48f02378d41249c8abd7 <nil>
}
