package guard

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/cric-talk/guards/internal/input"
)

// A Job is what a delayed check puts on the delayed queue, as JSON.
type Job struct {
	UserID    string          `json:"userId"`
	Activity  string          `json:"activity"`
	RequestID string          `json:"requestId"` // lets the queue's consumer run each job once
	ReadyAt   int64           `json:"readyAt"`   // when its place comes up, in Unix milliseconds
	Enqueued  int64           `json:"enqueued"`  // places given in later windows, up to this one
	Job       json.RawMessage `json:"job"`       // the caller's job, unchanged
}

// delay puts the job of a delayed check on the queue. If that fails, the caller
// can send the event again with the same requestId and gets the same place.
func (h *Handler) delay(ctx context.Context, a Answer) error {
	err := h.Delay(ctx, Job{
		UserID: a.UserID, Activity: a.Activity, RequestID: a.RequestID,
		ReadyAt: a.Decision.ReadyAt, Enqueued: a.Decision.Waiting, Job: a.Job,
	})
	if err == nil {
		return nil
	}
	h.log().LogAttrs(ctx, slog.LevelError, "job not delayed", slog.String("activity", a.Activity), slog.Any("error", err))
	return &input.Unavailable{What: "the job could not be put on the delayed queue", Cause: err}
}
