package console_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// js runs a JavaScript expression in the page and stores its value in result. It
// waits for a promise. Result may be nil.
func (b *browser) js(expression string, result any) {
	b.t.Helper()
	var reply struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.do("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &reply)
	if e := reply.ExceptionDetails; e != nil {
		b.t.Fatalf("%.200s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(reply.Result.Value, result); err != nil {
		b.t.Fatalf("%.200s is %s: %v", expression, reply.Result.Value, err)
	}
}

// value returns the value of a JavaScript expression.
func value[T any](b *browser, expression string) (v T) {
	b.t.Helper()
	b.js(expression, &v)
	return v
}

// text returns the text of the first element that matches, on one line.
func (b *browser) text(selector string) string {
	b.t.Helper()
	return strings.Join(strings.Fields(value[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))), " ")
}

// wait waits until the text of an element contains want, and returns the text.
func (b *browser) wait(selector, want string) string {
	b.t.Helper()
	var got string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = b.text(selector); strings.Contains(got, want) {
			return got
		}
	}
	b.t.Fatalf("%s is %q, want %q in it", selector, got, want)
	return ""
}

// click clicks an element.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.js(fmt.Sprintf("document.querySelector(%q).click()", selector), nil)
}

// choose sets the value of a form's field as a person does.
func (b *browser) choose(id, value string) {
	b.t.Helper()
	b.js(fmt.Sprintf("{const e = document.getElementById(%q); e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true}))}", id, value), nil)
}

// keys are the virtual key codes of the keys that press knows.
var keys = map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}

// press presses a key. The modifier 8 is Shift.
func (b *browser) press(key string, modifiers int) {
	b.t.Helper()
	event := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": keys[key], "modifiers": modifiers}
	switch key {
	case "Enter":
		event["text"] = "\r"
	case " ":
		event["text"], event["code"] = " ", "Space"
	}
	b.do("Input.dispatchKeyEvent", event, nil)
	event["type"] = "keyUp"
	delete(event, "text")
	b.do("Input.dispatchKeyEvent", event, nil)
}

// write types a text into the field that has the focus, instead of its content.
func (b *browser) write(text string) {
	b.t.Helper()
	b.js("document.activeElement.select()", nil)
	b.do("Input.insertText", map[string]any{"text": text}, nil)
}

// tabTo presses Tab until an element has the focus.
func (b *browser) tabTo(selector string) {
	b.t.Helper()
	for range 80 {
		b.press("Tab", 0)
		if value[bool](b, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			return
		}
	}
	b.t.Fatalf("Tab does not reach %s", selector)
}

// dark switches the page between dark and light.
func (b *browser) dark(on bool) {
	b.t.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[on]
	b.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}
