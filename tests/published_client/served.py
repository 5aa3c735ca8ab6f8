"""Which methods of the published client this server answers, and why it does not answer others.

Every public method of both classes stands in exactly one of the two, so that none of a new
version of the client can be forgotten. docs/openintent.md tells its readers the same.
"""

from __future__ import annotations

SERVED = frozenset(
    {
        # Service
        "discover",
        "close",
        # Memory (RFC-0015)
        "create_memory",
        "get_memory",
        "list_memory",
        "update_memory",
        "delete_memory",
        # Intents (RFC-0001)
        "create_intent",
        "get_intent",
        "list_intents",
        "update_state",
        "set_status",
        # Intent graphs (RFC-0002)
        "create_child_intent",
        "get_children",
        "get_descendants",
        "get_ancestors",
        "get_dependencies",
        "get_dependents",
        "add_dependency",
        "remove_dependency",
        "get_ready_intents",
        "get_blocked_intents",
        "get_intent_graph",
        # Event logs, and the client's own helpers that write to them
        "log_event",
        "get_events",
        "log_tool_call_started",
        "log_tool_call_completed",
        "log_tool_call_failed",
        "log_llm_request_started",
        "log_llm_request_completed",
        "log_llm_request_failed",
        "start_stream",
        "log_stream_chunk",
        "complete_stream",
        "cancel_stream",
        "subscribe_sse",
        "create_event_queue",
        # Leases (RFC-0003)
        "acquire_lease",
        "renew_lease",
        "release_lease",
        "get_leases",
        "lease",
        # Attachments (RFC-0005)
        "add_attachment",
        "get_attachments",
        "delete_attachment",
        # Access (RFC-0011)
        "get_acl",
        "set_acl",
        "grant_access",
        "revoke_access",
        # Tasks (RFC-0012)
        "create_task",
        "get_task",
        "list_tasks",
        "update_task",
        # Coordinators (RFC-0013)
        "create_coordinator_lease",
        "get_coordinator_lease",
        "list_coordinator_leases",
        "coordinator_heartbeat",
    }
)

_GROUPS: dict[str, str] = {
    "portfolios (RFC-0004) gather intents; memory needs none of them": (
        "create_portfolio get_portfolio list_portfolios update_portfolio_status"
        " add_intent_to_portfolio remove_intent_from_portfolio get_portfolio_intents"
        " get_intent_portfolios subscribe_portfolio"
    ),
    "webhook subscriptions (RFC-0006) would have this server call others": (
        "subscribe get_subscriptions unsubscribe"
    ),
    "costs (RFC-0009) are not memory": "record_cost get_costs",
    "retry policies and failures (RFC-0010) are the workers' matter; a task counts its attempts": (
        "set_retry_policy get_retry_policy record_failure get_failures"
    ),
    "requests for access (RFC-0011): an administrator of the intent grants it instead": (
        "request_access list_access_requests approve_access_request deny_access_request"
    ),
    "agents are assigned to tasks, not to intents": ("assign_agent unassign_agent subscribe_agent"),
    "plans (RFC-0012): a task's depends_on says what comes first": (
        "create_plan get_plan list_plans update_plan"
    ),
    "decisions, arbitration, escalation and approval (RFC-0003 and RFC-0013) are people's matter": (
        "request_arbitration record_decision get_decisions escalate_to_human list_escalations"
        " resolve_escalation request_approval get_approval_status approve_approval deny_approval"
        " create_decision_record list_decision_records"
    ),
    "governance policies of intents (RFC-0013); guardrails of coordinators are served": (
        "set_governance_policy get_governance_policy remove_governance_policy"
    ),
    "credentials and tools (RFC-0014): this server keeps no secrets of others": (
        "create_vault get_vault create_credential get_credential create_tool_grant get_tool_grant"
        " list_agent_grants revoke_grant record_invocation list_invocations invoke_tool"
    ),
    "a registry of agents (RFC-0016): keys say who an agent is": (
        "register_agent get_agent_record list_agents agent_heartbeat update_agent_status"
    ),
    "triggers (RFC-0017) start work; this server keeps what work remembers": (
        "create_trigger get_trigger list_triggers update_trigger fire_trigger delete_trigger"
    ),
    "agents' own signing keys (RFC-0018)": (
        "register_identity complete_identity_challenge get_identity verify_signature rotate_key"
    ),
    "checkpoints and proofs of event logs (RFC-0019)": (
        "verify_event_chain list_checkpoints get_checkpoint get_merkle_proof verify_consistency"
    ),
    "channels (RFC-0021) are messages, not memory": (
        "create_channel list_channels get_channel close_channel send_message reply_to"
        " list_messages get_message mark_read ask"
    ),
    "federation (RFC-0022)": (
        "federation_status list_federated_agents federation_dispatch federation_receive"
        " send_federation_callback federation_discover"
    ),
    "the reference server's own settings (RFC-0026)": "get_server_config",
}

NOT_SERVED: dict[str, str] = {
    method: reason for reason, methods in _GROUPS.items() for method in methods.split()
}
