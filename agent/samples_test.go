package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// sample reads a file of examples/agent.
func sample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "examples", "agent", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each sample sets only variables that the agent or a client reads, and asks for its health.
func TestTheSamplesSetVariablesThatExist(t *testing.T) {
	known := []string{"GUARDS_AGENT", "GUARDS_AGENT_ADDR", "GUARDS_AGENT_SOCKET_MODE", "GUARDS_AGENT_TOKEN", "GUARDS_TABLE_NAME", "GUARDS_METRICS_NAMESPACE"}
	for _, name := range []string{"ecs-task.json", "kubernetes.yaml", "kubernetes-socket.yaml", "compose.yaml"} {
		text := sample(t, name)
		var whole any
		if err := yaml.Unmarshal([]byte(text), &whole); err != nil { // JSON is YAML
			t.Errorf("%s: %v", name, err)
		}
		for _, variable := range regexp.MustCompile(`\bGUARDS_\w+`).FindAllString(text, -1) {
			if !slices.Contains(known, variable) {
				t.Errorf("%s sets %s, which nobody reads", name, variable)
			}
		}
		if !regexp.MustCompile(`/guards-agent"?, "?health`).MatchString(text) {
			t.Errorf("%s does not ask for the agent's health", name)
		}
	}
	if lines := strings.Count(sample(t, "Dockerfile"), "\n"); lines != 3 {
		t.Errorf("the Dockerfile has %d lines, want 3", lines)
	}
}

// What the samples must have, each at its place.
func TestTheSamples(t *testing.T) {
	var task struct {
		NetworkMode          string
		ContainerDefinitions []struct {
			Name      string
			DependsOn []struct{ ContainerName, Condition string }
		}
	}
	if err := json.Unmarshal([]byte(sample(t, "ecs-task.json")), &task); err != nil || task.NetworkMode != "awsvpc" ||
		len(task.ContainerDefinitions[0].DependsOn) != 1 || task.ContainerDefinitions[0].DependsOn[0].Condition != "HEALTHY" {
		t.Errorf("%+v, %v", task, err)
	}
	for _, name := range []string{"kubernetes.yaml", "kubernetes-socket.yaml"} {
		var pod struct {
			Spec struct {
				InitContainers []struct {
					Name          string `yaml:"name"`
					RestartPolicy string `yaml:"restartPolicy"`
				} `yaml:"initContainers"`
			} `yaml:"spec"`
		}
		if err := yaml.Unmarshal([]byte(sample(t, name)), &pod); err != nil || len(pod.Spec.InitContainers) != 1 || pod.Spec.InitContainers[0].RestartPolicy != "Always" {
			t.Errorf("%s: %+v, %v", name, pod, err)
		}
	}
	var services struct {
		Services map[string]struct {
			NetworkMode string `yaml:"network_mode"`
		} `yaml:"services"`
	}
	if err := yaml.Unmarshal([]byte(sample(t, "compose.yaml")), &services); err != nil || services.Services["guards-agent"].NetworkMode != "service:app" {
		t.Errorf("%+v, %v", services, err)
	}
}
