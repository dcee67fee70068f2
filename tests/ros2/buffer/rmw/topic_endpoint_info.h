/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for <rmw/topic_endpoint_info.h> of ROS 2: the backend takes endpoints, and reads none of their fields. */
#pragma once

typedef struct rmw_topic_endpoint_info_s {
    const char* node_name;
} rmw_topic_endpoint_info_t;
