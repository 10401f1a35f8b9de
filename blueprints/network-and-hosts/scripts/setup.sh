#!/bin/sh
# Runs on the host, as often as you like: a service on port $1 that says that it is up.
set -eu
port=$1
mkdir -p /srv/service
echo up >/srv/service/health
cat >/etc/systemd/system/service.service <<UNIT
[Service]
ExecStart=/usr/bin/python3 -m http.server $port --directory /srv/service
DynamicUser=yes
Restart=always
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable service
systemctl restart service
