//! The reasons that Cilium has for dropping a packet.
//!
//! Source: enum `DropReason` of Cilium 1.19, `api/v1/flow/flow.proto`.

/// Whether Cilium has a reason of that name, exactly as it is written. Newer versions may have more, and a number that
/// has no name yet stands for itself.
#[must_use]
pub fn known_drop_reason(name: &str) -> bool {
    let number = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    number || DROP_REASONS.iter().any(|(_, known)| *known == name)
}

/// Numbers and names of all of them.
pub const DROP_REASONS: &[(u32, &str)] = &[
    (0, "DROP_REASON_UNKNOWN"),
    (130, "INVALID_SOURCE_MAC"),
    (131, "INVALID_DESTINATION_MAC"),
    (132, "INVALID_SOURCE_IP"),
    (133, "POLICY_DENIED"),
    (134, "INVALID_PACKET_DROPPED"),
    (135, "CT_TRUNCATED_OR_INVALID_HEADER"),
    (136, "CT_MISSING_TCP_ACK_FLAG"),
    (137, "CT_UNKNOWN_L4_PROTOCOL"),
    (138, "CT_CANNOT_CREATE_ENTRY_FROM_PACKET"),
    (139, "UNSUPPORTED_L3_PROTOCOL"),
    (140, "MISSED_TAIL_CALL"),
    (141, "ERROR_WRITING_TO_PACKET"),
    (142, "UNKNOWN_L4_PROTOCOL"),
    (143, "UNKNOWN_ICMPV4_CODE"),
    (144, "UNKNOWN_ICMPV4_TYPE"),
    (145, "UNKNOWN_ICMPV6_CODE"),
    (146, "UNKNOWN_ICMPV6_TYPE"),
    (147, "ERROR_RETRIEVING_TUNNEL_KEY"),
    (148, "ERROR_RETRIEVING_TUNNEL_OPTIONS"),
    (149, "INVALID_GENEVE_OPTION"),
    (150, "UNKNOWN_L3_TARGET_ADDRESS"),
    (151, "STALE_OR_UNROUTABLE_IP"),
    (152, "NO_MATCHING_LOCAL_CONTAINER_FOUND"),
    (153, "ERROR_WHILE_CORRECTING_L3_CHECKSUM"),
    (154, "ERROR_WHILE_CORRECTING_L4_CHECKSUM"),
    (155, "CT_MAP_INSERTION_FAILED"),
    (156, "INVALID_IPV6_EXTENSION_HEADER"),
    (157, "IP_FRAGMENTATION_NOT_SUPPORTED"),
    (158, "SERVICE_BACKEND_NOT_FOUND"),
    (160, "NO_TUNNEL_OR_ENCAPSULATION_ENDPOINT"),
    (161, "FAILED_TO_INSERT_INTO_PROXYMAP"),
    (162, "REACHED_EDT_RATE_LIMITING_DROP_HORIZON"),
    (163, "UNKNOWN_CONNECTION_TRACKING_STATE"),
    (164, "LOCAL_HOST_IS_UNREACHABLE"),
    (165, "NO_CONFIGURATION_AVAILABLE_TO_PERFORM_POLICY_DECISION"),
    (166, "UNSUPPORTED_L2_PROTOCOL"),
    (167, "NO_MAPPING_FOR_NAT_MASQUERADE"),
    (168, "UNSUPPORTED_PROTOCOL_FOR_NAT_MASQUERADE"),
    (169, "FIB_LOOKUP_FAILED"),
    (170, "ENCAPSULATION_TRAFFIC_IS_PROHIBITED"),
    (171, "INVALID_IDENTITY"),
    (172, "UNKNOWN_SENDER"),
    (173, "NAT_NOT_NEEDED"),
    (174, "IS_A_CLUSTERIP"),
    (175, "FIRST_LOGICAL_DATAGRAM_FRAGMENT_NOT_FOUND"),
    (176, "FORBIDDEN_ICMPV6_MESSAGE"),
    (177, "DENIED_BY_LB_SRC_RANGE_CHECK"),
    (178, "SOCKET_LOOKUP_FAILED"),
    (179, "SOCKET_ASSIGN_FAILED"),
    (180, "PROXY_REDIRECTION_NOT_SUPPORTED_FOR_PROTOCOL"),
    (181, "POLICY_DENY"),
    (182, "VLAN_FILTERED"),
    (183, "INVALID_VNI"),
    (184, "INVALID_TC_BUFFER"),
    (185, "NO_SID"),
    (186, "MISSING_SRV6_STATE"),
    (187, "NAT46"),
    (188, "NAT64"),
    (189, "AUTH_REQUIRED"),
    (190, "CT_NO_MAP_FOUND"),
    (191, "SNAT_NO_MAP_FOUND"),
    (192, "INVALID_CLUSTER_ID"),
    (193, "UNSUPPORTED_PROTOCOL_FOR_DSR_ENCAP"),
    (194, "NO_EGRESS_GATEWAY"),
    (195, "UNENCRYPTED_TRAFFIC"),
    (196, "TTL_EXCEEDED"),
    (197, "NO_NODE_ID"),
    (198, "DROP_RATE_LIMITED"),
    (199, "IGMP_HANDLED"),
    (200, "IGMP_SUBSCRIBED"),
    (201, "MULTICAST_HANDLED"),
    (202, "DROP_HOST_NOT_READY"),
    (203, "DROP_EP_NOT_READY"),
    (204, "DROP_NO_EGRESS_IP"),
    (205, "DROP_PUNT_PROXY"),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_reason_is_known_by_its_exact_name_or_is_a_number() {
        for name in [
            "POLICY_DENIED",
            "POLICY_DENY",
            "DROP_REASON_UNKNOWN",
            "VLAN_FILTERED",
            "206",
        ] {
            assert!(known_drop_reason(name), "{name}");
        }
        for name in [
            "",
            "policy_denied",
            "POLICY_DENIDE",
            "POLICY_DENIED ",
            "-1",
            "0x85",
        ] {
            assert!(!known_drop_reason(name), "{name:?}");
        }
    }

    #[test]
    fn no_two_share_a_number_or_a_name() {
        let numbers: HashSet<u32> = DROP_REASONS.iter().map(|(number, _)| *number).collect();
        let names: HashSet<&str> = DROP_REASONS.iter().map(|(_, name)| *name).collect();
        assert_eq!((numbers.len(), names.len()), (76, 76));
    }
}
