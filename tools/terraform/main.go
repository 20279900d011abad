// Command terraform writes deploy/terraform/parameters.tf: a variable for each parameter of template.yaml, with its type, its
// description and what it accepts. It runs in its own folder, as go generate does.
package main

//go:generate go run .

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

func main() {
	template, err := os.ReadFile("../../template.yaml")
	var file []byte
	if err == nil {
		file, err = parametersFile(template)
	}
	if err == nil {
		err = os.WriteFile("../../deploy/terraform/parameters.tf", file, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "terraform:", err)
		os.Exit(1)
	}
}

// A parameter is one of a template. Bounds and lists are nil if there are none.
type parameter struct {
	Name                  string `yaml:"-"`
	Type                  string `yaml:"Type"`
	Description           string `yaml:"Description"`
	Default               any    `yaml:"Default"`
	AllowedPattern        string `yaml:"AllowedPattern"`
	AllowedValues         []any  `yaml:"AllowedValues"`
	MinValue              any    `yaml:"MinValue"`
	MaxValue              any    `yaml:"MaxValue"`
	ConstraintDescription string `yaml:"ConstraintDescription"`
}

// parametersFile returns the variables for the parameters of a template, in its order, and a local value with all of them.
func parametersFile(template []byte) ([]byte, error) {
	parameters, err := read(template)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("# The parameters of the template, as variables. go generate ./... writes this file from template.yaml.\n")
	longest := 0
	for _, p := range parameters {
		longest = max(longest, len(p.Name))
		if err := p.write(&b); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
	}
	b.WriteString("\nlocals {\n  # What is set, by the names in the template. null is not set.\n  variables = {\n")
	for _, p := range parameters {
		fmt.Fprintf(&b, "    %-*s = var.%s\n", longest, p.Name, p.variable())
	}
	b.WriteString("  }\n}\n")
	return b.Bytes(), nil
}

func read(template []byte) (list []parameter, err error) {
	var order struct {
		Parameters yaml.MapSlice `yaml:"Parameters"`
	}
	var content struct {
		Parameters map[string]parameter `yaml:"Parameters"`
	}
	if err := yaml.Unmarshal(template, &order); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(template, &content); err != nil {
		return nil, err
	}
	for _, item := range order.Parameters {
		p := content.Parameters[fmt.Sprint(item.Key)]
		p.Name = fmt.Sprint(item.Key)
		list = append(list, p)
	}
	return list, nil
}

// write writes a variable. It is null by default, so that a project's own default in template.extra.yaml counts.
func (p parameter) write(b *bytes.Buffer) error {
	kind, condition, want := "string", "", ""
	name := "var." + p.variable()
	switch {
	case fmt.Sprint(p.AllowedValues) == "[true false]":
		kind = "bool"
	case p.Type == "Number":
		kind = "number"
	case p.Type != "String":
		return fmt.Errorf("the type is %s, want String or Number", p.Type)
	}
	switch {
	case kind == "bool":
	case p.AllowedValues != nil:
		values := make([]string, len(p.AllowedValues))
		for i, v := range p.AllowedValues {
			values[i] = fmt.Sprint(v)
			if kind == "string" {
				values[i] = quote(values[i])
			}
		}
		condition = fmt.Sprintf("contains([%s], %s)", strings.Join(values, ", "), name)
		want = oneOf(p.AllowedValues)
	case p.AllowedPattern != "":
		condition = fmt.Sprintf("can(regex(%s, %s))", quote(p.AllowedPattern), name)
		want = p.ConstraintDescription
	case p.MinValue != nil && p.MaxValue != nil:
		condition = fmt.Sprintf("%s >= %v && %[1]s <= %[3]v", name, p.MinValue, p.MaxValue)
		want = fmt.Sprintf("a number from %v to %v", p.MinValue, p.MaxValue)
	case p.MinValue != nil:
		condition = fmt.Sprintf("%s >= %v", name, p.MinValue)
		want = fmt.Sprintf("a number of at least %v", p.MinValue)
	default:
		return errors.New("it accepts any value, want AllowedValues, AllowedPattern or MinValue")
	}

	description := fmt.Sprintf("%s The template's default is %s.", p.Description, cmp.Or(fmt.Sprint(p.Default), "empty"))
	fmt.Fprintf(b, "\nvariable %q {\n  description = %s\n  type        = %s\n  default     = null\n", p.variable(), quote(description), kind)
	if condition != "" {
		fmt.Fprintf(b, "\n  validation {\n    condition     = %s == null ? true : %s\n    error_message = %s\n  }\n",
			name, condition, quote(p.variable()+" must be "+want+"."))
	}
	b.WriteString("}\n")
	return nil
}

var boundary = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// variable returns the name in Terraform's style, such as name_prefix for NamePrefix.
func (p parameter) variable() string {
	return strings.ToLower(boundary.ReplaceAllString(p.Name, "${1}_$2"))
}

// oneOf returns values as words, such as "enforce, shadow or off".
func oneOf(values []any) string {
	words := strings.Fields(strings.Trim(fmt.Sprint(values), "[]"))
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// quote returns a string of HCL, in which ${ and %{ begin nothing.
func quote(text string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(text))
}
