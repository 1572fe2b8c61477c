package app

import (
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"portico/upstream/transport"
)

// TestCanceledCallIsNoError: the client has gone, so the span of the call does not count as failed.
func TestCanceledCallIsNoError(t *testing.T) {
	for reason, want := range map[transport.Reason]codes.Code{"": codes.Unset, transport.Canceled: codes.Unset, transport.BadResponse: codes.Error} {
		recorder := tracetest.NewSpanRecorder()
		_, span := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test").Start(t.Context(), "call")
		callSpan{span}.Observe(transport.Sample{Tries: 1, Reason: reason})
		if got := recorder.Ended()[0].Status().Code; got != want {
			t.Errorf("reason %q: %v, want %v", reason, got, want)
		}
	}
}
