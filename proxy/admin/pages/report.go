package pages

import (
	"bytes"
	"io"
	"net/http"

	"portico/upstream/canary"
)

func tellReport(w http.ResponseWriter, report canary.Report) { tell(w, http.StatusOK, report) }

func tellFindings(w http.ResponseWriter, report canary.Report) {
	findings := report.Findings
	if findings == nil {
		findings = []canary.FindingView{}
	}
	tell(w, http.StatusOK, map[string]any{"findings": findings})
}

func writeText(w http.ResponseWriter, report canary.Report) {
	written(w, "text/plain; charset=utf-8", report.Text)
}

func writeJUnit(w http.ResponseWriter, report canary.Report) {
	written(w, "application/xml; charset=utf-8", report.JUnit)
}

// written answers with what write makes, whole or not at all.
func written(w http.ResponseWriter, kind string, write func(io.Writer) error) {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		tell(w, http.StatusInternalServerError, fault{Error: "The report cannot be written."})
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(text.Bytes()) // who went away needs no error
}
