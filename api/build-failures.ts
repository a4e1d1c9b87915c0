/**
 * Why a build failed and what to do about it: reasons of the condition Failed of a MachineOSBuild and of its event.
 * docs/reference/build-failures.md is generated from them.
 */
export const buildFailures = {
  RegistryUnavailable: 'check the registry; the message contains its response',
  RegistryRefusedCredentials: 'fix the credentials in the Secret: the registry rejects them',
  RegistryRefused: 'fix what the registry’s response names: the repository or the permissions on it',
  SecretUnusable: 'create or fix the Secret that the message names',
  BaseImageArchitecture:
    'use a base image for every architecture of the pool’s nodes, or one pool per architecture',
  NoArchitecture: 'set `--architecture`: no node has reported its own',
  InvalidReference: 'fix the image reference in the message',
  InvalidConfig: 'fix the MachineConfig that the message names',
  NotLayerable: 'remove what the message names from the MachineConfig: no image can carry it',
  UnknownKernelType: 'use `default`, `realtime` or `64k-pages`',
  InvalidPackageName: 'fix the name of the package or extension',
  UnexpectedContent: 'check the registry or the engine: the content does not match its digest',
  PoliciesChanged: 'nothing: a build for the new policies follows',
  NoEngine: 'configure a container engine for the builder (`--engine`): the image needs commands to run',
  EngineMisconfigured: 'fix the flags of the container engine',
  EngineUnavailable: 'check the container engine: it can’t be reached',
  EngineDiskFull: 'free disk space where the container engine keeps images',
  EngineFailed: 'check the container engine; the message contains its response',
  EngineArchitecture: 'set up emulation for the architecture on the container engine’s host',
  EngineTimedOut: 'make the commands faster, or raise the limit (`--engine-minutes`)',
  ContainerfileFailed: 'fix the Containerfile; `status.logTail` has its output',
  NotOnBase: 'base the last stage of the Containerfile on `configs`',
  SecretInLayer: 'fix the Containerfile: a command copied a build secret into the image',
  SecretsNotSupported: 'use Podman: Docker’s API does not accept build secrets',
  MountsNotSupported: 'use a container engine that supports the mounts in the message',
  BuildError: 'read the message: the error is unexpected. The build is retried',
} as const;

export type BuildFailureReason = keyof typeof buildFailures;
