/** There is nothing to finalize or to go back to. */
export class NoDeploymentError extends Error {
  override readonly name = 'NoDeploymentError';
}
