"""CVLUE: conversion of rows, and prompt functions."""
