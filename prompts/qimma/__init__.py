"""QIMMA: conversion of rows, prompt functions, code problems."""
