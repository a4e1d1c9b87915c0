/**
 * Why an image was not built: reasons of the condition Failed of a MachineOSBuild, and of its event. Told in
 * docs/reference/build-failures.md.
 */
export const buildFailures = {
  RegistryUnavailable: 'look at the registry; the message has its answer',
  RegistryRefusedCredentials: 'mend the content of the Secret: the registry does not let it in',
  RegistryRefused: 'mend what the registry’s answer says: the repository’s name or rights',
  SecretUnusable: 'make or mend the Secret that the message names',
  BaseImageArchitecture: 'use a base image for all architectures of the pool’s nodes, or more pools',
  NoArchitecture: 'say one by `--architecture`: no node has told its own',
  InvalidReference: 'mend the name of the image that the message quotes',
  InvalidConfig: 'mend the MachineConfig that the message names',
  NotLayerable: 'no image can carry what the message names; take it out of the MachineConfig',
  UnknownKernelType: 'use `default`, `realtime` or `64k-pages`',
  InvalidPackageName: 'mend the name of the package or extension',
  UnexpectedContent: 'what came is not what its digest says: look at the registry, or at the engine',
  PoliciesChanged: 'nothing: a build for the new policies follows',
  NoEngine: 'commands are asked for: give the builder an engine (`--engine`)',
  EngineMisconfigured: 'mend the flags that name the engine',
  EngineUnavailable: 'look after the engine: it can’t be reached',
  EngineDiskFull: 'make room where the engine keeps images',
  EngineFailed: 'look after the engine; the message has its answer',
  EngineArchitecture: 'give the engine’s host emulation for the architecture',
  EngineTimedOut: 'make the commands quicker, or give them longer (`--engine-minutes`)',
  ContainerfileFailed: 'mend the Containerfile; `status.logTail` has its output',
  NotOnBase: 'let the last stage of the Containerfile stand on `configs`',
  SecretInLayer: 'a command copied a build secret into the image: mend the Containerfile',
  SecretsNotSupported: 'use Podman: Docker’s API can’t be given build secrets',
  MountsNotSupported: 'use an engine that can do the mounts that the message names',
  BuildError: 'nobody foresaw it: the message is all there is',
} as const;

export type BuildFailureReason = keyof typeof buildFailures;
