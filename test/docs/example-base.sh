# Run by pages as `. test/docs/example-base.sh REFERENCE`: brings the image that the sandbox's nodes come with to the registry
# of the examples, sets BASE to it by digest, and has the nodes and the builder trust that registry.
BASE=$(shale sandbox status | awk '$1 == "stock" {print $3}')
skopeo copy --quiet --src-tls-verify=false "docker://$BASE" "docker://$1"
BASE=${1%:*}@${BASE#*@}
kubectl -n shale-system patch configmap registry-cas --type merge \
  --patch "$(jq --null-input --rawfile ca ca.pem '{data: {"registry.example.com": $ca}}')"
