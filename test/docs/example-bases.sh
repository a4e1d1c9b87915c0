# Run by pages as `. test/docs/example-bases.sh`: pushes two releases of a small base image to the registry of the examples. They
# have what shale image diff reads, and nothing that boots.
release() { # VERSION KERNEL PACKAGE=VERSION...
  root=$(mktemp -d)
  mkdir -p "$root/var/lib/dpkg" "$root/usr/lib/modules/$2" "$root/usr/lib/systemd/system/multi-user.target.wants" "$root/etc"
  touch "$root/usr/lib/modules/$2/vmlinuz" "$root/usr/lib/systemd/system/chrony.service"
  ln -s ../chrony.service "$root/usr/lib/systemd/system/multi-user.target.wants/chrony.service"
  printf 'PRETTY_NAME="Example OS %s"\n' "$1" > "$root/usr/lib/os-release"
  printf 'root:x:0:0::/root:/bin/sh\n' > "$root/etc/passwd"
  version=$1
  shift 2
  for each; do
    printf 'Package: %s\nStatus: install ok installed\nArchitecture: amd64\nVersion: %s\n\n' "${each%%=*}" "${each#*=}"
  done > "$root/var/lib/dpkg/status"
  tar --create --file "$root.tar" --directory "$root" .
  skopeo copy --quiet "tarball:$root.tar" "docker://registry.example.com/os/base:$version"
  rm -r "$root" "$root.tar"
}
release 41 6.12.9 chrony=4.3-2 libssl3=3.0.15-1~deb12u1 linux-image=6.12.9-1 telnet=0.17-41
release 42 6.12.14 chrony=4.3-2 libssl3=3.0.16-1~deb12u1 linux-image=6.12.14-1 nftables=1.1.3-1

# Reports of these as Trivy writes them, in the files 41.json and 42.json: ID PACKAGE VERSION FIXED SEVERITY of each vulnerability.
report() { # RELEASE ID,PACKAGE,VERSION,FIXED,SEVERITY...
  name=registry.example.com/os/base@$(skopeo inspect --format '{{.Digest}}' "docker://registry.example.com/os/base:$1")
  file=$1.json
  shift
  found=$(for each; do
    printf '%s' "$each" | awk -F, '{ printf "{\"VulnerabilityID\":\"%s\",\"PkgName\":\"%s\",\"InstalledVersion\":\"%s\",\"FixedVersion\":\"%s\",\"Severity\":\"%s\"}\n", $1, $2, $3, $4, $5 }'
  done | paste -sd,)
  printf '{"SchemaVersion":2,"CreatedAt":"2026-03-01T00:00:00Z","ArtifactType":"container_image","Metadata":{"RepoDigests":["%s"]},"Results":[{"Class":"os-pkgs","Vulnerabilities":[%s]}]}\n' "$name" "$found" > "$file"
}
report 41 CVE-2026-0001,libssl3,3.0.15-1~deb12u1,3.0.16-1~deb12u1,CRITICAL CVE-2026-0002,chrony,4.3-2,,LOW
report 42 CVE-2026-0002,chrony,4.3-2,,LOW CVE-2026-0003,nftables,1.1.3-1,,HIGH
