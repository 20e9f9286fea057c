"""Reading weights: safetensors directories and GGUF files, converted once.

Never a pickle, never a download, never code that comes with a model.
"""
