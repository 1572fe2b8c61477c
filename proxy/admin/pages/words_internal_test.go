package pages

import (
	"os"
	"regexp"
	"testing"

	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
)

func TestNumbersInWords(t *testing.T) {
	for got, want := range map[string]string{
		plural(1, "rule", "rules"): "1 rule", plural(0, "rule", "rules"): "0 rules",
		quoteShell("it's"): `'it'\''s'`,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEveryClassAndReasonIsExplained(t *testing.T) {
	for _, class := range compare.Classes() {
		if class.Means() == "" {
			t.Errorf("the class %s is not explained", class)
		}
	}
	source, err := os.ReadFile("../../../upstream/canary/verdict/drops.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`DropReason = "([a-z-]+)"`).FindAllSubmatch(source, -1)
	for _, reason := range reasons {
		if drops[verdict.DropReason(reason[1])] == "" {
			t.Errorf("the reason %s is not explained", reason[1])
		}
	}
	if len(reasons) != len(drops) {
		t.Errorf("%d reasons, and %d are explained", len(reasons), len(drops))
	}
}
