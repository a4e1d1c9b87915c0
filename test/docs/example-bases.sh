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
