// SPDX-License-Identifier: Apache-2.0
// Measures franz-go's balancers for the benchmark: reads contract lines, writes times.
//
// Each line is encoded as JoinGroup members once. Then the balancer runs again and again for the
// number of seconds in the argument. Only balancing is timed, not parsing the members.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type group struct {
	Assignor string
	Topics   []struct {
		Name       string
		Partitions int32
	}
	Members []struct {
		MemberID        string `json:"member_id"`
		Topics          []string
		OwnedPartitions []struct {
			Topic      string
			Partitions []int32
		} `json:"owned_partitions"`
		GenerationID *int32 `json:"generation_id"`
	}
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	check(err)
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) == 0 {
			return
		}
		var g group
		check(json.Unmarshal(line, &g))
		answer, _ := json.Marshal(map[string]any{"ms": times(g, seconds)})
		fmt.Println(string(answer))
		if err != nil {
			return
		}
	}
}

func times(g group, seconds float64) []float64 {
	balancer := kgo.StickyBalancer()
	if g.Assignor == "cooperative-sticky" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	members, topics := joined(g)
	var ms []float64
	for start := time.Now(); len(ms) < 3 || time.Since(start).Seconds() < seconds; {
		member, _, err := balancer.MemberBalancer(members)
		check(err)
		once := time.Now()
		_, err = member.(kgo.GroupMemberBalancerOrError).BalanceOrError(topics)
		check(err)
		ms = append(ms, float64(time.Since(once).Nanoseconds())/1e6)
	}
	return ms
}

func joined(g group) ([]kmsg.JoinGroupResponseMember, map[string]int32) {
	topics := make(map[string]int32)
	for _, topic := range g.Topics {
		topics[topic.Name] = topic.Partitions
	}
	var members []kmsg.JoinGroupResponseMember
	for _, m := range g.Members {
		sent := kmsg.NewConsumerMemberMetadata()
		sent.Version = 2
		sent.Topics = m.Topics
		// franz-go's sticky balancer reads owned partitions from user data, the cooperative one from
		// the fields.
		history := kmsg.NewStickyMemberMetadata()
		sent.Generation = 1
		history.Generation = 1
		for _, owned := range m.OwnedPartitions {
			field := kmsg.NewConsumerMemberMetadataOwnedPartition()
			field.Topic, field.Partitions = owned.Topic, owned.Partitions
			sent.OwnedPartitions = append(sent.OwnedPartitions, field)
			entry := kmsg.NewStickyMemberMetadataCurrentAssignment()
			entry.Topic, entry.Partitions = owned.Topic, owned.Partitions
			history.CurrentAssignment = append(history.CurrentAssignment, entry)
		}
		if g.Assignor != "cooperative-sticky" {
			sent.OwnedPartitions = nil
			sent.UserData = history.AppendTo(nil)
		}
		member := kmsg.NewJoinGroupResponseMember()
		member.MemberID = m.MemberID
		member.ProtocolMetadata = sent.AppendTo(nil)
		members = append(members, member)
	}
	return members, topics
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
