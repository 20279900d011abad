package guard

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/cric-talk/guards/internal/input"
)

// A Job is what a delayed check puts on the delayed queue.
type Job struct {
	UserID    string          `json:"userId"`
	Activity  string          `json:"activity"`
	RequestID string          `json:"requestId"` // the queue's consumer uses it to run a job once
	ReadyAt   int64           `json:"readyAt"`   // Unix milliseconds
	Enqueued  int64           `json:"enqueued"`
	Job       json.RawMessage `json:"job"` // as the caller gave it
}

// delay puts the job of a delayed check on the queue. If that fails, its place
// passes; a caller who asks again with the same requestId gets it again.
func (h *Handler) delay(ctx context.Context, a Answer) error {
	err := h.Delay(ctx, Job{
		UserID: a.UserID, Activity: a.Activity, RequestID: a.RequestID,
		ReadyAt: a.Decision.ReadyAt, Enqueued: a.Decision.Waiting, Job: a.Job,
	})
	if err == nil {
		return nil
	}
	if h.Log != nil {
		h.Log.LogAttrs(ctx, slog.LevelError, "job not delayed", slog.String("activity", a.Activity), slog.Any("error", err))
	}
	return &input.Unavailable{What: "the job could not be put on the delayed queue", Cause: err}
}
