package findings

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"text/template"

	"github.com/cric-talk/guards/internal/workbench/words"
)

// A view is what the template of a page can show of the saved results.
type view struct {
	page  Page
	root  string
	files map[string][]byte // the pictures, by their names
}

func (v view) functions() template.FuncMap {
	return template.FuncMap{"figure": v.figure, "cell": v.cell, "found": v.found, "table": v.table, "goals": v.goals}
}

// result returns the result of a part, and whether its code has changed since.
func (v view) result(name string) (s Saved, older bool, err error) {
	part, err := v.page.Part(name)
	if err != nil {
		return s, false, err
	}
	s, older, err = v.page.saved(v.root, part)
	if err == nil && s.Command == "" {
		err = fmt.Errorf("there are no figures yet: %s finds them", part.Command)
	}
	return s, older, err
}

// figure returns the value of a figure.
func (v view) figure(name, what string) (string, error) {
	s, _, err := v.result(name)
	for _, f := range s.Figures {
		if f.What == what {
			return grouped(f.Value), err
		}
	}
	return "", errors.Join(err, fmt.Errorf("%s has no figure %q", name, what))
}

// cell returns a cell of a table, as [Table.Cell].
func (v view) cell(name, column string, with ...string) (string, error) {
	s, _, err := v.result(name)
	for _, t := range s.Tables {
		if text, ok := t.Cell(column, with...); ok {
			return grouped(text), err
		}
	}
	return "", errors.Join(err, fmt.Errorf("%s has no cell %q with %q", name, column, with))
}

// found returns two cells: the commit and the date of a result, and whether its code has changed since.
func (v view) found(name string) (string, error) {
	s, older, err := v.result(name)
	changed := "no"
	if older {
		changed = "yes"
	}
	return s.Commit + ", " + s.Date + " | " + changed, err
}

// table returns a table as Markdown.
func (v view) table(name, title string) (string, error) {
	s, _, err := v.result(name)
	for _, t := range s.Tables {
		if t.Title == title {
			return markdown(t), err
		}
	}
	return "", errors.Join(err, fmt.Errorf("%s has no table %q", name, title))
}

// goals returns the pictures of some parts, their goals, and where all figures are.
func (v view) goals(names ...string) (string, error) {
	page := strings.TrimSuffix(path.Base(v.page.File), ".md")
	t := Table{Head: []string{"goal", "median", "at most", "met"}}
	var pictures, found []string
	for _, name := range names {
		s, older, err := v.result(name)
		if err != nil {
			return "", err
		}
		for _, c := range s.Charts {
			picture := "img/" + page + "-" + c.Name + ".svg"
			v.files["docs/"+picture] = c.SVG()
			pictures = append(pictures, fmt.Sprintf("![%s](%s)\n\n", c.Title, picture))
		}
		for _, g := range s.Goals {
			t.Rows = append(t.Rows, []string{g.What, fmt.Sprintf("%.3g", g.Median), fmt.Sprint(g.Most), g.Met()})
		}
		from := fmt.Sprintf("[%s.json](%s/%s.json), %s at %s", name, page, name, s.Date, s.Commit)
		if older {
			from += ", since changed"
		}
		found = append(found, from)
	}
	text := strings.Join(pictures, "")
	if len(t.Rows) > 0 {
		text += markdown(t) + "\n"
	}
	return text + strings.Join(found, "; ") + ".", nil
}

// markdown returns a table without its title.
func markdown(t Table) string {
	escaped := strings.NewReplacer("|", `\|`, "\n", " ")
	var b strings.Builder
	line := func(cells []string) {
		for _, cell := range cells {
			b.WriteString("| " + escaped.Replace(grouped(cell)) + " ")
		}
		b.WriteString("|\n")
	}
	line(t.Head)
	b.WriteString(strings.Repeat("|---", len(t.Head)) + "|\n")
	for _, cells := range t.Rows {
		line(cells)
	}
	return b.String()
}

// grouped returns a whole number with commas between thousands, and any other
// text as it is.
func grouped(cell string) string {
	if n, err := strconv.ParseInt(cell, 10, 64); err == nil && n >= 0 && strconv.FormatInt(n, 10) == cell {
		return words.Grouped(n)
	}
	return cell
}
