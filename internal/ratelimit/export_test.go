package ratelimit

// Bytes returns how many bytes the memory takes by its own account.
func (m *Memory) Bytes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}
